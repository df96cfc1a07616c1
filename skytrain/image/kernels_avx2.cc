#include <immintrin.h>

#include <cstring>

#include "skytrain/image/kernels.h"
#include "skytrain/image/kernels_scalar.h"

#define TARGET __attribute__((target("avx2")))

namespace skytrain::image {
namespace {

TARGET inline __m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
TARGET inline __m128i load_half(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
TARGET inline void store(void* at, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(at), value); }
TARGET inline void store_half(void* at, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(at), value); }

// As with SSE4.1, with an output in each half of a register.
TARGET void scale_line(const uint8_t* line, const Taps16& taps, uint8_t* out) {
  const __m256i first_two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
  const __m256i last_two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
  const __m256i half = _mm256_set1_epi32(1 << taps.precision() >> 1);
  const __m128i shift = _mm_cvtsi32_si128(taps.precision());
  const int64_t groups = taps.groups();
  for (int64_t block = 0; block < taps.blocks(); ++block, out += 16) {
    const int32_t* const starts = taps.block_starts(block);
    const int16_t* const weights = taps.block_weights(block);
    __m256i sums[2] = {half, half};
    for (int64_t g = 0; g < groups; ++g) {
      for (int i = 0; i < 2; ++i) {
        const uint8_t* const from = line + 16 * g;
        const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(from + 4 * starts[2 * i])),
                                                       load_half(from + 4 * starts[2 * i + 1]), 1);
        const __m256i eight =
            _mm256_permute4x64_epi64(_mm256_castsi128_si256(load_half(weights + 16 * g + 8 * i)), 0x50);
        const __m256i a = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first_two), _mm256_shuffle_epi32(eight, 0x00));
        const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, last_two), _mm256_shuffle_epi32(eight, 0x55));
        sums[i] = _mm256_add_epi32(sums[i], _mm256_add_epi32(a, b));
      }
    }
    const __m256i words = _mm256_packs_epi32(_mm256_sra_epi32(sums[0], shift), _mm256_sra_epi32(sums[1], shift));
    // Outputs 0 and 2, then 1 and 3.
    const __m256i bytes =
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(words, words), _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0));
    store_half(out, _mm256_castsi256_si128(bytes));
  }
}

TARGET void blend_lines(const uint8_t* const* lines, const int16_t* weights, int64_t count, int precision,
                        int64_t bytes, uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(1 << precision >> 1), zero = _mm256_setzero_si256();
  const __m128i shift = _mm_cvtsi32_si128(precision);
  for (int64_t at = 0; at < bytes; at += 32) {
    __m256i sums[4] = {half, half, half, half};
    for (int64_t k = 0; k < count; k += 2) {
      const bool pair = k + 1 < count;
      const __m256i a = load(lines[k] + at), b = pair ? load(lines[k + 1] + at) : zero;
      const uint32_t two = static_cast<uint16_t>(weights[k]) | (pair ? uint32_t(uint16_t(weights[k + 1])) << 16 : 0);
      const __m256i weight = _mm256_set1_epi32(static_cast<int32_t>(two));
      const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
      sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
      sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
      sums[2] = _mm256_add_epi32(sums[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
      sums[3] = _mm256_add_epi32(sums[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
    }
    for (__m256i& sum : sums) sum = _mm256_sra_epi32(sum, shift);
    store(out + at, _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3])));
  }
}

TARGET inline __m256i to_bfloat16(__m256 value) {  // in the low halves of 32 bits
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
}

// 8 x 32 bits, of which the upper half is 0, to 16 bits.
TARGET inline __m128i narrow(__m256i words) {
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08));
}

TARGET void write_planes(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  const __m256i byte = _mm256_set1_epi32(255);
  int64_t x = 0;
  for (; x + 8 <= pixels; x += 8) {
    const __m256i eight = load(rgbx + 4 * x);
    for (int c = 0; c < 3; ++c) {
      const __m256i channel = _mm256_and_si256(_mm256_srl_epi32(eight, _mm_cvtsi32_si128(8 * c)), byte);
      const int64_t at = c * plane + x;
      if (spec.type == ElementType::kUint8) {
        const __m128i words = narrow(channel);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(static_cast<uint8_t*>(out) + at), _mm_packus_epi16(words, words));
        continue;
      }
      const __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(spec.scale[c]), _mm256_cvtepi32_ps(channel));
      const __m256 value = _mm256_add_ps(scaled, _mm256_set1_ps(spec.offset[c]));
      if (spec.type == ElementType::kFloat32) {
        float* const to = static_cast<float*>(out) + at;
        if (spec.past_cache && scalar::is_aligned(to, 32)) {
          _mm256_stream_ps(to, value);
        } else {
          _mm256_storeu_ps(to, value);
        }
      } else {
        uint16_t* const to = static_cast<uint16_t*>(out) + at;
        if (spec.past_cache && scalar::is_aligned(to, 16)) {
          _mm_stream_si128(reinterpret_cast<__m128i*>(to), narrow(to_bfloat16(value)));
        } else {
          store_half(to, narrow(to_bfloat16(value)));
        }
      }
    }
  }
  scalar::write_pixels(rgbx, x, pixels, spec, plane, out);
}

// Two pixels to six floats at a time; each store writes two elements too many, which the next one puts right.
TARGET void write_pixels(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, void* out) {
  const __m256 scale =
      _mm256_setr_ps(spec.scale[0], spec.scale[1], spec.scale[2], spec.scale[0], spec.scale[1], spec.scale[2], 0, 0);
  const __m256 offset = _mm256_setr_ps(spec.offset[0], spec.offset[1], spec.offset[2], spec.offset[0], spec.offset[1],
                                       spec.offset[2], 0, 0);
  const __m128i three = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  int64_t x = 0;
  if (spec.type == ElementType::kUint8) {
    for (; x + 6 <= pixels; x += 4) {
      store_half(static_cast<uint8_t*>(out) + 3 * x, _mm_shuffle_epi8(load_half(rgbx + 4 * x), three));
    }
  } else {
    for (; x + 3 <= pixels; x += 2) {
      const __m128i two = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rgbx + 4 * x));
      const __m256 channels = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(two, three)));
      const __m256 value = _mm256_add_ps(_mm256_mul_ps(scale, channels), offset);
      if (spec.type == ElementType::kFloat32) {
        _mm256_storeu_ps(static_cast<float*>(out) + 3 * x, value);
      } else {
        store_half(static_cast<uint16_t*>(out) + 3 * x, narrow(to_bfloat16(value)));
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

const Kernels kAvx2Kernels{"avx2", scale_line, blend_lines, write_line};

}  // namespace skytrain::image
