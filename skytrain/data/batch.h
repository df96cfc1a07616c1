// skytrain/data/batch.h
//
// Fills a batch: pixels or features -> transforms -> float32, in the caller's buffer. Augmentation is keyed by
// (seed, epoch, sample), so a sample looks the same on any topology and after any resume.

#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "skytrain/data/bad_samples.h"
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

  struct Form {
    image::Layout layout = image::Layout::kChw;  // kHwc where fills_hwc() is true
    image::Size shape;  // of the samples; width 0: as info() says; others: where fills_any_shape()
  };

  // Writes sample samples[i] to images + i*C*H*W and its target to place i of targets. Pixels are scaled to [0, 1],
  // features are not. Once each thread has decoded its largest picture, nothing is allocated. Thread-safe. Throws what
  // Dataset::pixels() throws; what was filled before is whole.
  void fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, Targets targets, const Form& form) const;
  void fill(uint64_t epoch, std::span<const uint64_t> samples, float* images, Targets targets) const {
    fill(epoch, samples, images, targets, Form{});
  }
  // The same, but those that `bad` takes are left out: the others move up, in `samples` too. Returns how many there
  // are.
  size_t fill_good(uint64_t epoch, std::span<uint64_t> samples, float* images, Targets targets, const Form& form,
                   BadSamples& bad) const;

  // Whether samples can be of another height and width than the data set says.
  bool fills_any_shape() const { return encoded_.has_value(); }
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

  int64_t sample_size(const Form& form) const;
  void fill_one(uint64_t epoch, uint64_t sample, float* image, const Targets& targets, size_t place,
                const Form& form) const;
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
