// skytrain/image/cmyk.h

#pragma once
#include <cstdint>

namespace skytrain::image {

// a * b / 255, rounded.
inline uint8_t multiply_pixels(uint8_t a, uint8_t b) {
  const uint32_t product = uint32_t{a} * b + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

// Inverted CMYK (255 is no ink) to RGB, `stride` bytes a pixel; with 4 also in place.
template <int stride>
void cmyk_to_rgb(const uint8_t* cmyk, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i, cmyk += 4, rgb += stride) {
    for (int c = 0; c < 3; ++c) rgb[c] = multiply_pixels(cmyk[c], cmyk[3]);
  }
}

}  // namespace skytrain::image
