// skytrain/data/batch.h
//
// Fills a batch: pixels or features -> transforms -> float32, in the caller's buffer. Augmentation is keyed by
// (seed, epoch, sample), so a sample looks the same on any topology and after any resume.

#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "skytrain/data/dataset.h"
#include "skytrain/data/encoded_filler.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

// Where the targets of a batch of n samples go. What the data set's targets are not may be nullptr.
struct Targets {
  int64_t* labels = nullptr;  // [n], of a set of classes
  float* values = nullptr;    // [n, info.values], of a set of values
};

class BatchFiller {
 public:
  // dataset must outlive this. training: random transforms apply. Throws Error(kRecipe) when a transform does not fit
  // the data (number of channels; pictures only).
  BatchFiller(const Dataset& dataset, const std::vector<recipe::TransformSpec>& transforms, uint64_t seed,
              bool training);

  // Writes sample samples[i] to images + i*C*H*W and its target to place i of targets. Pixels are scaled to [0, 1],
  // features are not. layout: kHwc where fills_hwc() is true. Once each thread has decoded its largest picture, nothing
  // is allocated. Thread-safe. Throws what Dataset::pixels() throws; what was filled before is whole.
  void fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, Targets targets,
            image::Layout layout = image::Layout::kChw) const;
  // Whether samples can be written with their channels last; the others would have to be turned around.
  bool fills_hwc() const { return encoded_.has_value(); }

 private:
  struct Normalization {
    float mean, std;
  };
  // Where a sample is looked at: how far the crop lies from the picture itself, in [-pad, pad], and whether it is
  // mirrored after that.
  struct View {
    int64_t down = 0, right = 0;
    bool mirrored = false;
  };

  View view(uint64_t epoch, uint64_t sample) const;
  void add_normalization(const recipe::TransformSpec& transform, const std::string& where);
  void fill_picture(const uint8_t* pixels, const View& view, float* out) const;
  void fill_features(const float* features, float* out) const;

  const Dataset& dataset_;
  std::optional<EncodedFiller> encoded_;       // pictures that are not looked at as pixels
  std::vector<float> lookup_;                  // pixels: [channel][256]: uint8 -> normalised float
  std::vector<Normalization> normalizations_;  // features: [transform][channel]
  uint64_t seed_;
  int64_t pad_ = 0;
  double mirror_probability_ = 0;
};

}  // namespace skytrain::data
