#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "skytrain/image/kernels.h"
#include "skytrain/image/kernels_scalar.h"

// GCC 12 takes its own header's _mm512_undefined_epi32() for a mistake (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))

namespace skytrain::image {
namespace {

TARGET inline __m512i load(const void* at) { return _mm512_loadu_si512(at); }
TARGET inline __m128i load_quarter(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

// As with SSE4.1, with an output in each quarter of a register.
TARGET void scale_line(const uint8_t* line, const Taps16& taps, uint8_t* out) {
  const __m512i first_two =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
  const __m512i last_two =
      _mm512_broadcast_i32x4(_mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
  const __m512i half = _mm512_set1_epi32(1 << taps.precision() >> 1), zero = _mm512_setzero_si512();
  const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
  const __m128i shift = _mm_cvtsi32_si128(taps.precision());
  const int64_t groups = taps.groups();
  const int32_t* starts = taps.block_starts(0);
  const int16_t* weights = taps.block_weights(0);
  for (int64_t block = 0; block < taps.blocks(); ++block, out += 16, starts += 4) {
    __m512i sum = half;
    for (int64_t g = 0; g < groups; ++g, weights += 16) {
      const uint8_t* const from = line + 16 * g;
      __m512i pixels = _mm512_castsi128_si512(load_quarter(from + 4 * starts[0]));
      pixels = _mm512_inserti32x4(pixels, load_quarter(from + 4 * starts[1]), 1);
      pixels = _mm512_inserti32x4(pixels, load_quarter(from + 4 * starts[2]), 2);
      pixels = _mm512_inserti32x4(pixels, load_quarter(from + 4 * starts[3]), 3);
      const __m512i all = _mm512_permutexvar_epi64(
          twice, _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights))));
      const __m512i a = _mm512_madd_epi16(_mm512_shuffle_epi8(pixels, first_two),
                                          _mm512_shuffle_epi32(all, static_cast<_MM_PERM_ENUM>(0x00)));
      const __m512i b = _mm512_madd_epi16(_mm512_shuffle_epi8(pixels, last_two),
                                          _mm512_shuffle_epi32(all, static_cast<_MM_PERM_ENUM>(0x55)));
      sum = _mm512_add_epi32(sum, _mm512_add_epi32(a, b));
    }
    sum = _mm512_max_epi32(_mm512_sra_epi32(sum, shift), zero);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtusepi32_epi8(sum));
  }
}

TARGET void blend_lines(const uint8_t* const* lines, const int16_t* weights, int64_t count, int precision,
                        int64_t bytes, uint8_t* out) {
  const __m512i half = _mm512_set1_epi32(1 << precision >> 1), zero = _mm512_setzero_si512();
  const __m128i shift = _mm_cvtsi32_si128(precision);
  for (int64_t at = 0; at < bytes; at += 64) {
    __m512i sums[4] = {half, half, half, half};
    for (int64_t k = 0; k < count; k += 2) {
      const bool pair = k + 1 < count;
      const __m512i a = load(lines[k] + at), b = pair ? load(lines[k + 1] + at) : zero;
      const uint32_t two = static_cast<uint16_t>(weights[k]) | (pair ? uint32_t(uint16_t(weights[k + 1])) << 16 : 0);
      const __m512i weight = _mm512_set1_epi32(static_cast<int32_t>(two));
      const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
      sums[0] = _mm512_add_epi32(sums[0], _mm512_madd_epi16(_mm512_unpacklo_epi8(low, zero), weight));
      sums[1] = _mm512_add_epi32(sums[1], _mm512_madd_epi16(_mm512_unpackhi_epi8(low, zero), weight));
      sums[2] = _mm512_add_epi32(sums[2], _mm512_madd_epi16(_mm512_unpacklo_epi8(high, zero), weight));
      sums[3] = _mm512_add_epi32(sums[3], _mm512_madd_epi16(_mm512_unpackhi_epi8(high, zero), weight));
    }
    for (__m512i& sum : sums) sum = _mm512_sra_epi32(sum, shift);
    _mm512_storeu_si512(
        out + at, _mm512_packus_epi16(_mm512_packs_epi32(sums[0], sums[1]), _mm512_packs_epi32(sums[2], sums[3])));
  }
}

TARGET inline __m512i to_bfloat16(__m512 value) {  // in the low halves of 32 bits
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  return _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
}

// The first `left` of 16 elements.
TARGET inline __mmask16 first(int64_t left) { return static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1); }

// 16 elements (or what is left of a line), the first of which is element `at`. kUint8 ignores all but the pixels.
TARGET inline void write(__m512i pixels, const OutputSpec& spec, __m512 scale, __m512 offset, __mmask16 mask, void* out,
                         int64_t at) {
  if (spec.type == ElementType::kUint8) {
    _mm_mask_storeu_epi8(static_cast<uint8_t*>(out) + at, mask, _mm512_cvtepi32_epi8(pixels));
    return;
  }
  // Fused, the two would be rounded once.
  const __m512 value = _mm512_add_ps(_mm512_mul_ps(scale, _mm512_cvtepi32_ps(pixels)), offset);
  const bool stream = spec.past_cache && mask == 0xffff;
  if (spec.type == ElementType::kFloat32) {
    float* const to = static_cast<float*>(out) + at;
    if (stream && scalar::is_aligned(to, 64)) {
      _mm512_stream_ps(to, value);
    } else {
      _mm512_mask_storeu_ps(to, mask, value);
    }
  } else {
    uint16_t* const to = static_cast<uint16_t*>(out) + at;
    const __m256i halves = _mm512_cvtepi32_epi16(to_bfloat16(value));
    if (stream && scalar::is_aligned(to, 32)) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), halves);
    } else {
      _mm256_mask_storeu_epi16(to, mask, halves);
    }
  }
}

TARGET void write_planes(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  const __m512i byte = _mm512_set1_epi32(255);
  __m512 scale[3], offset[3];
  for (int c = 0; c < 3; ++c) {
    scale[c] = _mm512_set1_ps(spec.scale[c]);
    offset[c] = _mm512_set1_ps(spec.offset[c]);
  }
  for (int64_t x = 0; x < pixels; x += 16) {
    const __mmask16 mask = first(pixels - x);
    const __m512i all = _mm512_maskz_loadu_epi32(mask, rgbx + 4 * x);
    write(_mm512_and_si512(all, byte), spec, scale[0], offset[0], mask, out, x);
    write(_mm512_and_si512(_mm512_srli_epi32(all, 8), byte), spec, scale[1], offset[1], mask, out, plane + x);
    write(_mm512_and_si512(_mm512_srli_epi32(all, 16), byte), spec, scale[2], offset[2], mask, out, 2 * plane + x);
  }
}

// 16 pixels are 48 elements, in three registers that each begin with another channel.
TARGET void write_pixels(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, void* out) {
  alignas(64) float scales[48], offsets[48];
  for (int i = 0; i < 48; ++i) {
    scales[i] = spec.scale[i % 3];
    offsets[i] = spec.offset[i % 3];
  }
  const __m128i three = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m512i dense = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
  for (int64_t x = 0; x < pixels; x += 16) {
    const __m512i all = _mm512_maskz_loadu_epi32(first(pixels - x), rgbx + 4 * x);
    alignas(64) uint8_t bytes[64];
    _mm512_store_si512(bytes, _mm512_permutexvar_epi32(dense, _mm512_shuffle_epi8(all, _mm512_broadcast_i32x4(three))));
    for (int part = 0; part < 3; ++part) {
      const int64_t left = 3 * (pixels - x) - 16 * part;
      if (left <= 0) break;
      write(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part))), spec,
            _mm512_load_ps(scales + 16 * part), _mm512_load_ps(offsets + 16 * part), first(left), out,
            3 * x + 16 * part);
    }
  }
}

TARGET void write_line(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  if (spec.layout == Layout::kChw) {
    write_planes(rgbx, pixels, spec, plane, out);
  } else {
    write_pixels(rgbx, pixels, spec, out);
  }
}

}  // namespace

const Kernels kAvx512Kernels{"avx512", scale_line, blend_lines, write_line};

}  // namespace skytrain::image
