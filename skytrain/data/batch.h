// skytrain/data/batch.h
//
// Fills a batch: pixels -> transforms -> float32 NCHW, in the caller's buffer. Augmentation is keyed by
// (seed, epoch, sample), so a sample looks the same on any topology and after any resume.

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "skytrain/data/dataset.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

class BatchFiller {
 public:
  // dataset must outlive this. training: random transforms apply. Throws Error(kRecipe) when a transform does not fit
  // the data (number of channels).
  BatchFiller(const Dataset& dataset, const std::vector<recipe::TransformSpec>& transforms, uint64_t seed,
              bool training);

  // Writes sample samples[i] to images + i*C*H*W and its label to labels[i]. No allocation. Thread-safe.
  void fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, int64_t* labels) const;

 private:
  const Dataset& dataset_;
  std::vector<float> lookup_;  // [channel][256]: uint8 -> normalised float
  uint64_t seed_;
  int64_t pad_ = 0;
};

}  // namespace skytrain::data
