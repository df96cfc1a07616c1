#include "skytrain/image/geometry.h"

#include <emmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace skytrain::image {
namespace {

constexpr size_t kSlack = 16;  // bytes that may be read beyond the copy

const uint8_t* copy_of(const Pixels& pixels, ByteBuffer& spare) {
  const auto bytes = static_cast<size_t>(4 * pixels.count());
  uint8_t* const copy = spare.room(bytes + kSlack, "augmentation");
  std::memcpy(copy, pixels.rgbx, bytes);
  return copy;
}

// Eight bytes as words of 16 bits.
__m128i words(const uint8_t* bytes) {
  return _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)), _mm_setzero_si128());
}

// Of 0..3315, rounded: (2 n + 13) / 26 by a multiplication.
__m128i thirteenth(__m128i n) {
  const __m128i odd = _mm_add_epi16(_mm_slli_epi16(n, 1), _mm_set1_epi16(13));
  return _mm_srli_epi16(_mm_mulhi_epu16(_mm_slli_epi16(odd, 3), _mm_set1_epi16(20165)), 6);
}

// pixel + difference * factor, cut to bytes and rounded down: words to the lower eight bytes.
__m128i blend(__m128i pixel, __m128i difference, float factor) {
  const auto half = [&](__m128i pixels, __m128i differences) {
    const __m128 sum =
        _mm_add_ps(_mm_cvtepi32_ps(pixels), _mm_mul_ps(_mm_cvtepi32_ps(differences), _mm_set1_ps(factor)));
    return _mm_cvttps_epi32(_mm_min_ps(_mm_max_ps(sum, _mm_setzero_ps()), _mm_set1_ps(255)));
  };
  const __m128i zero = _mm_setzero_si128(), sign = _mm_cmpgt_epi16(zero, difference);
  const __m128i low = half(_mm_unpacklo_epi16(pixel, zero), _mm_unpacklo_epi16(difference, sign));
  const __m128i high = half(_mm_unpackhi_epi16(pixel, zero), _mm_unpackhi_epi16(difference, sign));
  const __m128i blended = _mm_packs_epi32(low, high);
  return _mm_packus_epi16(blended, blended);
}

}  // namespace

Affine translation(double right, double down) { return {.c = -right, .f = -down}; }

// What turns the picture one way fetches its pixels from the other.
Affine rotation(double degrees) {
  const double angle = degrees * (std::numbers::pi / 180);
  return {.a = std::cos(angle), .b = -std::sin(angle), .d = std::sin(angle), .e = std::cos(angle)};
}

// The corner is size/2 from the centre.
Affine shear_x(double tangent, const Size& size) {
  return {.b = tangent, .c = tangent * 0.5 * static_cast<double>(size.height)};
}

Affine shear_y(double tangent, const Size& size) {
  return {.d = tangent, .f = tangent * 0.5 * static_cast<double>(size.width)};
}

// In the steps and the precision of torch's affine grid and grid_sample, whose coordinates go from -1 to 1.
void transform_nearest(const Pixels& pixels, const Affine& affine, const uint8_t (&fill)[3], ByteBuffer& spare) {
  const uint8_t* const from = copy_of(pixels, spare);
  const auto width = static_cast<float>(pixels.width), height = static_cast<float>(pixels.height);
  const float half_width = 0.5f * width, half_height = 0.5f * height;
  const auto over = [](double value, float half) { return static_cast<float>(value) / half; };
  const float a = over(affine.a, half_width), b = over(affine.b, half_width), c = over(affine.c, half_width);
  const float d = over(affine.d, half_height), e = over(affine.e, half_height), f = over(affine.f, half_height);
  const uint32_t outside = fill[0] | uint32_t{fill[1]} << 8 | uint32_t{fill[2]} << 16;
  const __m128 one = _mm_set1_ps(1), half = _mm_set1_ps(0.5f);
  uint8_t* out = pixels.rgbx;
  for (int64_t y = 0; y < pixels.height; ++y) {
    const float down = static_cast<float>(y) + (1 - height) * 0.5f;
    for (int64_t x = 0; x < pixels.width; x += 4) {
      const __m128 right = _mm_add_ps(_mm_set1_ps(static_cast<float>(x) + (1 - width) * 0.5f), _mm_setr_ps(0, 1, 2, 3));
      const auto place = [&](float by_x, float by_y, float shift, float half_size) {
        const __m128 at =
            _mm_add_ps(_mm_add_ps(_mm_mul_ps(right, _mm_set1_ps(by_x)), _mm_set1_ps(down * by_y)), _mm_set1_ps(shift));
        return _mm_cvtps_epi32(_mm_sub_ps(_mm_mul_ps(_mm_add_ps(at, one), _mm_set1_ps(half_size)), half));
      };
      alignas(16) int32_t columns[4], rows[4];
      _mm_store_si128(reinterpret_cast<__m128i*>(columns), place(a, b, c, half_width));
      _mm_store_si128(reinterpret_cast<__m128i*>(rows), place(d, e, f, half_height));
      const int64_t count = std::min<int64_t>(4, pixels.width - x);
      for (int64_t i = 0; i < count; ++i, out += 4) {
        const bool inside = columns[i] >= 0 && columns[i] < pixels.width && rows[i] >= 0 && rows[i] < pixels.height;
        const void* const source = inside ? static_cast<const void*>(from + 4 * (rows[i] * pixels.width + columns[i]))
                                          : static_cast<const void*>(&outside);
        std::memcpy(out, source, 4);
      }
    }
  }
}

void adjust_sharpness(const Pixels& pixels, double factor, ByteBuffer& spare) {
  if (pixels.width <= 2 || pixels.height <= 2) return;
  const uint8_t* const from = copy_of(pixels, spare);
  const auto rest = static_cast<float>(1 - factor);
  const int64_t stride = 4 * pixels.width;
  for (int64_t y = 1; y + 1 < pixels.height; ++y) {
    const uint8_t* const middle = from + y * stride;
    uint8_t* const out = pixels.rgbx + y * stride;
    // Eight bytes at a time. The last eight of a line overlap those before; a line of three pixels has four bytes, and
    // reads and writes four of the outermost pixel, which are put back.
    const int64_t last = std::max<int64_t>(stride - 12, 4);
    uint32_t outermost;
    std::memcpy(&outermost, middle + stride - 4, sizeof outermost);
    for (int64_t i = 4; i < stride - 4; i += 8) {
      const int64_t place = std::min(i, last);
      const auto near = [&](const uint8_t* line) { return _mm_add_epi16(words(line - 4), words(line + 4)); };
      const uint8_t* const here = middle + place;
      const __m128i pixel = words(here);
      __m128i sum = _mm_add_epi16(words(here - stride), words(here + stride));
      sum = _mm_add_epi16(sum, _mm_add_epi16(near(here - stride), near(here + stride)));
      sum = _mm_add_epi16(sum, _mm_add_epi16(near(here), _mm_add_epi16(pixel, _mm_slli_epi16(pixel, 2))));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + place),
                       blend(pixel, _mm_sub_epi16(thirteenth(sum), pixel), rest));
    }
    std::memcpy(out + stride - 4, &outermost, sizeof outermost);
  }
}

}  // namespace skytrain::image
