// skytrain/train/data_feed.h
//
// From a slot of the run to its tensors: which samples it holds, their pixels and targets, augmented and mixed.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "skytrain/data/batch.h"
#include "skytrain/data/dataset.h"
#include "skytrain/data/mixing.h"
#include "skytrain/data/slots.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

// images: [n, C, H, W] float32; target: classes [n] int64, or values [n, V] float32.
struct Batch {
  at::Tensor images, target;
};

class DataFeed {
 public:
  // dataset must outlive this. Throws Error(kRecipe) for transforms or mixing that don't fit it.
  DataFeed(const data::Dataset& dataset, const recipe::Recipe& recipe);

  // Fills images (contiguous, or in image_format()) and target. Thread-safe.
  void fill(const data::Slot& slot, const at::Tensor& images, const at::Tensor& target) const;

  // The slot in tensors of its own.
  Batch batch(const data::Slot& slot) const;

  // Engine::Options::target_values: 0, the values of a sample, or the shares of its classes when samples are mixed.
  int64_t target_values() const { return target_values_; }

  // Of the images inside the model. To be called before the first batch.
  void set_memory_format(at::MemoryFormat format);
  // The memory format in which images come at no cost: that one, or contiguous.
  at::MemoryFormat image_format() const { return image_format_; }

  // The samples of a slot, by index in the data set.
  void samples_of(const data::Slot& slot, std::vector<uint64_t>& indices) const;

 private:
  const data::Dataset& dataset_;
  data::BatchFiller filler_;
  data::Mixing mixing_;
  uint64_t seed_;
  int64_t target_values_ = 0;
  at::MemoryFormat image_format_ = at::MemoryFormat::Contiguous;
};

}  // namespace skytrain::train
