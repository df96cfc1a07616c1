// skytrain/image/random_resized_crop.h
//
// Which region of a picture torchvision's RandomResizedCrop takes. Thread-safe.

#pragma once
#include "skytrain/base/mix.h"
#include "skytrain/image/region.h"

namespace skytrain::image {

struct RandomResizedCrop {
  double min_area = 0.08, max_area = 1;             // of the picture's
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;  // width to height, drawn from the logarithm
};

// Ten tries, each of a uniform area, a log-uniform ratio and, if it fits, a uniform place; then the largest region of
// the middle whose ratio is allowed. Sides are rounded as Python does, halves to the even one. REQUIRES
// 0 < min <= max of both.
Region draw_region(const Size& picture, const RandomResizedCrop& crop, KeyedRandom& random);

// One try: sides of an area (a part of the picture's) and a ratio. They may be 0 or exceed the picture.
Size sides_of(const Size& picture, double area, double ratio);

// What is taken when no try fits.
Region central_region(const Size& picture, const RandomResizedCrop& crop);

}  // namespace skytrain::image
