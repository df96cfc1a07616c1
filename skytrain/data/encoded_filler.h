// skytrain/data/encoded_filler.h
//
// From the file of a picture to a sample of a batch in one pass: what is seen of it is decoded, scaled, mirrored and
// normalised line by line (image/resize.h), so that no picture is ever held whole.

#pragma once
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/image/color.h"
#include "skytrain/image/output.h"
#include "skytrain/image/rand_augment.h"
#include "skytrain/image/random_erasing.h"
#include "skytrain/image/random_resized_crop.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

class EncodedFiller {
 public:
  // pictures must outlive this. The transforms were checked by BatchFiller, which owns this. training: random ones
  // apply.
  EncodedFiller(const EncodedPictures& pictures, const std::vector<recipe::TransformSpec>& transforms, uint64_t seed,
                bool training);

  // Which part of an (upright) picture of this size is looked at.
  image::Region region(uint64_t epoch, uint64_t sample, const image::Size& size) const;

  // Writes 3 * height * width floats of `shape`, which may be another than the data set's size: what is seen of the
  // picture is scaled to it. The same (epoch, sample, shape) gives the same pixels on any topology. Thread-safe for
  // different scratches. Throws as EncodedPictures::pixels().
  void fill(uint64_t epoch, uint64_t sample, const image::Size& shape, image::Layout layout, float* out,
            Scratch& scratch) const;

 private:
  const EncodedPictures& pictures_;
  const uint64_t seed_;
  void change_pixels(uint64_t epoch, uint64_t sample, const image::Pixels& pixels, Scratch& scratch) const;

  std::optional<image::RandomResizedCrop> crop_;
  double mirror_probability_ = 0;
  // What stands in the recipe, in its order, of changes to the pixels.
  std::vector<std::variant<image::ColorJitter, image::RandAugment>> changes_;
  std::optional<image::RandomErasing> erasing_;
  image::OutputSpec output_;
};

}  // namespace skytrain::data
