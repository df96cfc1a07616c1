// skytrain/image/region_test_data.h
//
// For tests: regions of a picture against the whole of it.

#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "skytrain/image/picture.h"

namespace skytrain::image {

inline std::span<const uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

// From 1 to bound, often near the ends.
inline int64_t draw_extent(int64_t bound, std::mt19937& random) {
  const int64_t any = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  switch (random() % 4) {
    case 0:
      return bound;
    case 1:
      return std::min<int64_t>(any, 3);
    default:
      return any;
  }
}

inline int64_t draw_start(int64_t places, std::mt19937& random) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return places - 1;
    default:
      return static_cast<int64_t>(random() % static_cast<uint64_t>(places));
  }
}

inline Region draw_region(const Size& size, std::mt19937& random) {
  Region region;
  region.width = draw_extent(size.width, random);
  region.height = draw_extent(size.height, random);
  region.left = draw_start(size.width - region.width + 1, random);
  region.top = draw_start(size.height - region.height + 1, random);
  return region;
}

// Decodes `count` regions of the picture and compares each byte with the whole picture's.
inline void expect_regions(const std::string& file, int count, std::mt19937& random, Scratch& scratch) {
  Scratch fresh;
  const Picture whole = decode_picture(bytes_of(file), "x", fresh);
  for (int i = 0; i < count; ++i) {
    const Region region = draw_region({whole.width, whole.height}, random);
    const Picture part = decode_region(bytes_of(file), "x", region, scratch);
    ASSERT_EQ(part.width, region.width);
    ASSERT_EQ(part.height, region.height);
    for (int64_t y = 0; y < region.height; ++y) {
      const uint8_t* const expected = whole.pixels + 3 * ((region.top + y) * whole.width + region.left);
      const uint8_t* const got = part.pixels + 3 * y * region.width;
      if (std::memcmp(expected, got, static_cast<size_t>(3 * region.width)) == 0) continue;
      for (int64_t x = 0; x < 3 * region.width; ++x) {
        ASSERT_EQ(int{got[x]}, int{expected[x]})
            << "byte " << x << " of line " << y << " of " << region.width << " x " << region.height << " at ("
            << region.left << ", " << region.top << ") of " << whole.width << " x " << whole.height;
      }
    }
  }
}

}  // namespace skytrain::image
