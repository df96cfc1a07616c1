// skytrain/train/evaluation_set.h
//
// The samples that a model is evaluated on: opened, cut into batches, and filled into tensors.

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "skytrain/data/bad_samples.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/buckets.h"
#include "skytrain/data/dataset.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

class EvaluationSet {
 public:
  // dataset: of recipe.data.eval. stop: polled while the sizes of pictures are read for buckets. Throws Error(kData)
  // for targets that don't fit, Error(kRecipe) for transforms that don't.
  EvaluationSet(std::unique_ptr<data::Dataset> dataset, const recipe::Recipe& recipe,
                const std::function<bool()>& stop);

  const data::Dataset& dataset() const { return *dataset_; }
  const data::DatasetInfo& info() const { return dataset_->info(); }

  // Cut into batches of `size` samples, the last one of each shape shorter.
  struct Batches {
    struct Range {
      uint64_t bucket = 0, begin = 0, length = 0;  // places in the bucket
    };
    std::vector<uint64_t> buckets;  // samples
    uint64_t size = 1;
    uint64_t count() const;
    Range range(uint64_t batch) const;
  };
  Batches batches(uint64_t size) const;

  // Samples that can be used move to the front of `samples` (indices), images [n, C, H, W] and target; all are made to
  // fit. Thread-safe for different tensors. Throws Error(kData) when more are bad than the recipe allows.
  void fill(const Batches::Range& range, std::vector<uint64_t>& samples, at::Tensor& images, at::Tensor& target) const;

  data::BadSamples& bad_samples() const { return bad_; }

 private:
  std::unique_ptr<data::Dataset> dataset_;
  data::BatchFiller filler_;
  std::optional<data::Buckets> buckets_;
  mutable data::BadSamples bad_;
};

}  // namespace skytrain::train
