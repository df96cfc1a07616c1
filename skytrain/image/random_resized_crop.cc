#include "skytrain/image/random_resized_crop.h"

#include <cmath>

namespace skytrain::image {
namespace {

constexpr int kTries = 10;

int64_t half_to_even(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

}  // namespace

Size sides_of(const Size& picture, double area, double ratio) {
  const double pixels = area * static_cast<double>(picture.width * picture.height);
  return {.width = half_to_even(std::sqrt(pixels * ratio)), .height = half_to_even(std::sqrt(pixels / ratio))};
}

Region central_region(const Size& picture, const RandomResizedCrop& crop) {
  Size sides = picture;
  const double ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  if (ratio < crop.min_ratio) {
    sides.height = half_to_even(static_cast<double>(picture.width) / crop.min_ratio);
  } else if (ratio > crop.max_ratio) {
    sides.width = half_to_even(static_cast<double>(picture.height) * crop.max_ratio);
  }
  // Of a picture of one line, a side may be rounded to 0.
  sides.width = sides.width > 0 ? sides.width : 1;
  sides.height = sides.height > 0 ? sides.height : 1;
  return {.left = (picture.width - sides.width) / 2,
          .top = (picture.height - sides.height) / 2,
          .width = sides.width,
          .height = sides.height};
}

Region draw_region(const Size& picture, const RandomResizedCrop& crop, KeyedRandom& random) {
  const double log_min = std::log(crop.min_ratio), log_max = std::log(crop.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area = random.uniform(crop.min_area, crop.max_area);
    const double ratio = std::exp(random.uniform(log_min, log_max));
    const Size sides = sides_of(picture, area, ratio);
    if (sides.width < 1 || sides.height < 1 || sides.width > picture.width || sides.height > picture.height) continue;
    const auto place = [&](int64_t free) {
      return static_cast<int64_t>(random.integer(static_cast<uint64_t>(free) + 1));
    };
    Region region{.width = sides.width, .height = sides.height};
    region.top = place(picture.height - sides.height);
    region.left = place(picture.width - sides.width);
    return region;
  }
  return central_region(picture, crop);
}

}  // namespace skytrain::image
