#include "skytrain/image/kernels.h"

#include <cstddef>

#include "skytrain/image/kernels_scalar.h"

namespace skytrain::image {
namespace {

void scale_line(const uint8_t* line, const Taps16& taps, uint8_t* out) {
  const int precision = taps.precision();
  for (int64_t x = 0; x < taps.count(); ++x, out += 4) {
    const int16_t* const weights = taps.weights(x);
    const uint8_t* from = line + 4 * taps.first(x);
    int32_t sums[4];
    for (int32_t& sum : sums) sum = 1 << precision >> 1;
    for (int64_t k = 0; k < taps.used(x); ++k, from += 4) {
      for (int c = 0; c < 4; ++c) sums[c] += weights[k] * from[c];
    }
    for (int c = 0; c < 4; ++c) out[c] = scalar::to_pixel(sums[c], precision);
  }
}

void blend_lines(const uint8_t* const* lines, const int16_t* weights, int64_t count, int precision, int64_t bytes,
                 uint8_t* out) {
  for (int64_t i = 0; i < bytes; ++i) {
    int32_t sum = 1 << precision >> 1;
    for (int64_t k = 0; k < count; ++k) sum += weights[k] * lines[k][i];
    out[i] = scalar::to_pixel(sum, precision);
  }
}

void write_line(const uint8_t* rgbx, int64_t pixels, const OutputSpec& spec, int64_t plane, void* out) {
  scalar::write_pixels(rgbx, 0, pixels, spec, plane, out);
}

struct Runnable {
  const Kernels* kernels[4];
  size_t count = 0;
};

Runnable find_runnable() {
  Runnable found;
  found.kernels[found.count++] = &kScalarKernels;
  if (__builtin_cpu_supports("sse4.1")) found.kernels[found.count++] = &kSse41Kernels;
  if (__builtin_cpu_supports("avx2")) found.kernels[found.count++] = &kAvx2Kernels;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found.kernels[found.count++] = &kAvx512Kernels;
  }
  return found;
}

}  // namespace

const Kernels kScalarKernels{"scalar", scale_line, blend_lines, write_line};

std::span<const Kernels* const> runnable_kernels() {
  static const Runnable kFound = find_runnable();
  return {kFound.kernels, kFound.count};
}

const Kernels& best_kernels() { return *runnable_kernels().back(); }

OutputSpec normalized(const float (&mean)[3], const float (&std)[3]) {
  OutputSpec spec;
  for (int c = 0; c < 3; ++c) {
    spec.scale[c] = static_cast<float>(1 / (255.0 * std[c]));
    spec.offset[c] = static_cast<float>(-double{mean[c]} / std[c]);
  }
  return spec;
}

}  // namespace skytrain::image
