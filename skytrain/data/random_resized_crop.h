// skytrain/data/random_resized_crop.h
//
// Which part of a picture RandomResizedCrop looks at (torchvision.transforms.RandomResizedCrop.get_params; the
// "Inception crop" of Szegedy et al. 2014, arXiv 1409.4842).

#pragma once
#include <cstdint>
#include <vector>

#include "skytrain/image/region.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

class RandomResizedCrop {
 public:
  // Empty scale or ratio of the transform: torchvision's.
  explicit RandomResizedCrop(const recipe::TransformSpec& transform);

  // The region of a picture of this size under a key (mix.h): an area uniform in `scale` and an aspect ratio
  // log-uniform in `ratio`, at a uniform place; after ten that do not fit, the largest in the middle whose ratio is in
  // bounds. A pure function. REQUIRES: size is not empty.
  image::Region region(const image::Size& size, uint64_t key) const;

 private:
  double least_scale_ = 0.08, most_scale_ = 1, least_ratio_ = 3.0 / 4, most_ratio_ = 4.0 / 3;
};

}  // namespace skytrain::data
