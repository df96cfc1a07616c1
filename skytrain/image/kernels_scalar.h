// skytrain/image/kernels_scalar.h
//
// The kernels without vector instructions, which say what all of them compute; the others use them for what is left at
// the end of a line.

#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "skytrain/image/kernels.h"

namespace skytrain::image::scalar {

inline uint8_t to_pixel(int32_t sum, int precision) {
  return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
}

inline float to_float(uint8_t pixel, float scale, float offset) { return scale * static_cast<float>(pixel) + offset; }

// The upper 16 bits of a finite float, rounded to the nearest even.
inline uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline bool is_aligned(const void* at, size_t bytes) { return reinterpret_cast<uintptr_t>(at) % bytes == 0; }

// Pixels begin..end-1 of a line: see Kernels::write_line.
inline void write_pixels(const uint8_t* rgbx, int64_t begin, int64_t end, const OutputSpec& spec, int64_t plane,
                         void* out) {
  const int64_t step = spec.layout == Layout::kChw ? 1 : 3, channel = spec.layout == Layout::kChw ? plane : 1;
  for (int64_t x = begin; x < end; ++x) {
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t pixel = rgbx[4 * x + c];
      const int64_t at = x * step + c * channel;
      if (spec.type == ElementType::kUint8) {
        static_cast<uint8_t*>(out)[at] = pixel;
        continue;
      }
      const float value = to_float(pixel, spec.scale[c], spec.offset[c]);
      if (spec.type == ElementType::kFloat32) {
        static_cast<float*>(out)[at] = value;
      } else {
        static_cast<uint16_t*>(out)[at] = to_bfloat16(value);
      }
    }
  }
}

}  // namespace skytrain::image::scalar
