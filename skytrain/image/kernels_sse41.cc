#include <smmintrin.h>

#include <cstring>

#include "skytrain/image/kernels.h"
#include "skytrain/image/kernels_scalar.h"

#define TARGET __attribute__((target("sse4.1")))

namespace skytrain::image {
namespace {

TARGET inline __m128i load(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
TARGET inline void store(void* at, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(at), value); }

// Four pixels of 4 bytes at a time: red of two of them, green of two, …, as pairs of 16 bits, for a sum of products.
TARGET void scale_line(const uint8_t* line, const Taps16& taps, uint8_t* out) {
  const __m128i first_two = _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
  const __m128i last_two = _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const __m128i half = _mm_set1_epi32(1 << taps.precision() >> 1), shift = _mm_cvtsi32_si128(taps.precision());
  const int64_t groups = taps.groups();
  for (int64_t block = 0; block < taps.blocks(); ++block, out += 16) {
    const int32_t* const starts = taps.block_starts(block);
    const int16_t* const weights = taps.block_weights(block);
    __m128i sums[4] = {half, half, half, half};
    for (int64_t g = 0; g < groups; ++g) {
      for (int i = 0; i < 4; ++i) {
        const __m128i pixels = load(line + 4 * (starts[i] + 4 * g));
        const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + 16 * g + 4 * i));
        const __m128i a = _mm_madd_epi16(_mm_shuffle_epi8(pixels, first_two), _mm_shuffle_epi32(four, 0x00));
        const __m128i b = _mm_madd_epi16(_mm_shuffle_epi8(pixels, last_two), _mm_shuffle_epi32(four, 0x55));
        sums[i] = _mm_add_epi32(sums[i], _mm_add_epi32(a, b));
      }
    }
    for (__m128i& sum : sums) sum = _mm_sra_epi32(sum, shift);
    store(out, _mm_packus_epi16(_mm_packs_epi32(sums[0], sums[1]), _mm_packs_epi32(sums[2], sums[3])));
  }
}

TARGET void blend_lines(const uint8_t* const* lines, const int16_t* weights, int64_t count, int precision,
                        int64_t bytes, uint8_t* out) {
  const __m128i half = _mm_set1_epi32(1 << precision >> 1), shift = _mm_cvtsi32_si128(precision);
  const __m128i zero = _mm_setzero_si128();
  for (int64_t at = 0; at < bytes; at += 16) {
    __m128i sums[4] = {half, half, half, half};
    for (int64_t k = 0; k < count; k += 2) {
      const bool pair = k + 1 < count;
      const __m128i a = load(lines[k] + at), b = pair ? load(lines[k + 1] + at) : zero;
      const uint32_t two = static_cast<uint16_t>(weights[k]) | (pair ? uint32_t(uint16_t(weights[k + 1])) << 16 : 0);
      const __m128i weight = _mm_set1_epi32(static_cast<int32_t>(two));
      const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
      sums[0] = _mm_add_epi32(sums[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), weight));
      sums[1] = _mm_add_epi32(sums[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), weight));
      sums[2] = _mm_add_epi32(sums[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), weight));
      sums[3] = _mm_add_epi32(sums[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), weight));
    }
    for (__m128i& sum : sums) sum = _mm_sra_epi32(sum, shift);
    store(out + at, _mm_packus_epi16(_mm_packs_epi32(sums[0], sums[1]), _mm_packs_epi32(sums[2], sums[3])));
  }
}

TARGET inline __m128i to_bfloat16(__m128 value) {  // in the low halves of 32 bits
  const __m128i bits = _mm_castps_si128(value);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  return _mm_srli_epi32(_mm_add_epi32(_mm_add_epi32(bits, _mm_set1_epi32(0x7fff)), odd), 16);
}

TARGET void write_planes(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  const __m128i byte = _mm_set1_epi32(255);
  int64_t x = 0;
  for (; x + 4 <= pixels; x += 4) {
    const __m128i four = load(rgbx + 4 * x);
    for (int c = 0; c < 3; ++c) {
      const __m128i channel = _mm_and_si128(_mm_srl_epi32(four, _mm_cvtsi32_si128(8 * c)), byte);
      const int64_t at = c * plane + x;
      if (spec.type == ElementType::kUint8) {
        const __m128i packed = _mm_packus_epi16(_mm_packus_epi32(channel, channel), channel);
        const int32_t bits = _mm_cvtsi128_si32(packed);
        std::memcpy(static_cast<uint8_t*>(out) + at, &bits, sizeof bits);
        continue;
      }
      const __m128 scaled = _mm_mul_ps(_mm_set1_ps(spec.scale[c]), _mm_cvtepi32_ps(channel));
      const __m128 value = _mm_add_ps(scaled, _mm_set1_ps(spec.offset[c]));
      if (spec.type == ElementType::kFloat32) {
        _mm_storeu_ps(static_cast<float*>(out) + at, value);
      } else {
        const __m128i half = to_bfloat16(value);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(static_cast<uint16_t*>(out) + at), _mm_packus_epi32(half, half));
      }
    }
  }
  scalar::write_pixels(rgbx, x, pixels, spec, plane, out);
}

// Each store writes one element too many, which the next one puts right; the last pixels are done one by one.
TARGET void write_pixels(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, void* out) {
  const __m128 scale = _mm_setr_ps(spec.scale[0], spec.scale[1], spec.scale[2], 0);
  const __m128 offset = _mm_setr_ps(spec.offset[0], spec.offset[1], spec.offset[2], 0);
  const __m128i three = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  int64_t x = 0;
  if (spec.type == ElementType::kUint8) {
    for (; x + 6 <= pixels; x += 4)
      store(static_cast<uint8_t*>(out) + 3 * x, _mm_shuffle_epi8(load(rgbx + 4 * x), three));
  } else {
    for (; x + 2 <= pixels; ++x) {
      int32_t bits;
      std::memcpy(&bits, rgbx + 4 * x, sizeof bits);
      const __m128 channels = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bits)));
      const __m128 value = _mm_add_ps(_mm_mul_ps(scale, channels), offset);
      if (spec.type == ElementType::kFloat32) {
        _mm_storeu_ps(static_cast<float*>(out) + 3 * x, value);
      } else {
        const __m128i half = to_bfloat16(value);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(static_cast<uint16_t*>(out) + 3 * x), _mm_packus_epi32(half, half));
      }
    }
  }
  scalar::write_pixels(rgbx, x, pixels, spec, 0, out);
}

TARGET void write_line(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  if (spec.layout == Layout::kChw) {
    write_planes(rgbx, pixels, spec, plane, out);
  } else {
    write_pixels(rgbx, pixels, spec, out);
  }
}

}  // namespace

const Kernels kSse41Kernels{"sse4.1", scale_line, blend_lines, write_line};

}  // namespace skytrain::image
