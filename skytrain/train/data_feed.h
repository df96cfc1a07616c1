// skytrain/train/data_feed.h
//
// From a slot of the run to its tensors: which samples it holds, their pixels and targets, augmented and mixed.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "skytrain/data/bad_samples.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/buckets.h"
#include "skytrain/data/dataset.h"
#include "skytrain/data/mixing.h"
#include "skytrain/data/slots.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

// n: the slot's samples, without those that could not be used. images: [n, C, H, W] float32; target: classes [n] int64,
// or values [n, V] float32.
struct Batch {
  at::Tensor images, target;
};

class DataFeed {
 public:
  // dataset must outlive this. Throws Error(kRecipe) for transforms or mixing that don't fit it.
  DataFeed(const data::Dataset& dataset, const recipe::Recipe& recipe);

  // Divides the samples by their shape, where the recipe has buckets; reads all pictures' sizes for it. stop: polled.
  void divide(const std::function<bool()>& stop);
  // What data::Slots is made from: samples of each bucket.
  std::vector<uint64_t> bucket_samples() const;
  // Of the run: progressive resizing follows it. To be called before the first batch, and when it changes.
  void set_total_steps(uint64_t steps) { total_steps_ = steps; }

  // Fills images (contiguous, or in image_format()) and target with the samples of the slot that can be used; tensors
  // that don't fit are replaced. Thread-safe. Throws Error(kData) when more samples are bad than the recipe allows.
  void fill(const data::Slot& slot, at::Tensor& images, at::Tensor& target) const;

  // The slot in tensors of its own.
  Batch batch(const data::Slot& slot) const;
  // Zeros in the largest shape of the run: for measurements of memory.
  Batch largest_batch(int64_t samples) const;
  // Height and width of all shapes that batches can have, the largest first.
  std::vector<image::Size> shapes() const;

  data::BadSamples& bad_samples() const { return bad_; }

  // Engine::Options::target_values: 0, the values of a sample, or the shares of its classes when samples are mixed.
  int64_t target_values() const { return target_values_; }

  // Of the images inside the model. To be called before the first batch.
  void set_memory_format(at::MemoryFormat format);
  // The memory format in which images come at no cost: that one, or contiguous.
  at::MemoryFormat image_format() const { return image_format_; }

  // The samples of a slot, by index in the data set.
  void samples_of(const data::Slot& slot, std::vector<uint64_t>& indices) const;

 private:
  image::Size full_shape(uint64_t bucket) const;
  image::Size shape_of(const data::Slot& slot) const;
  void fill(const data::Slot& slot, const image::Size& shape, at::Tensor& images, at::Tensor& target) const;

  const data::Dataset& dataset_;
  data::BatchFiller filler_;
  data::Mixing mixing_;
  const recipe::DataSpec spec_;
  uint64_t seed_;
  int64_t target_values_ = 0;
  uint64_t total_steps_ = 0;
  std::optional<data::Buckets> buckets_;
  std::vector<uint64_t> bucket_begins_;  // positions
  mutable data::BadSamples bad_;
  at::MemoryFormat image_format_ = at::MemoryFormat::Contiguous;
};

}  // namespace skytrain::train
