// skytrain/image/region.h

#pragma once
#include <cstdint>

namespace skytrain::image {

// Width and height of a picture or of a part of it, in pixels.
struct Size {
  int64_t width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

// A rectangle of a picture, in pixels from its upper left corner.
struct Region {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Region&) const = default;
};

// Whether `region` has pixels, all of them inside.
constexpr bool lies_within(const Region& region, const Size& size) {
  return region.left >= 0 && region.top >= 0 && region.width > 0 && region.height > 0 && region.width <= size.width &&
         region.height <= size.height && region.left <= size.width - region.width &&
         region.top <= size.height - region.height;
}

}  // namespace skytrain::image
