#include "skytrain/image/random_erasing.h"

#include <cmath>
#include <numbers>

#include "skytrain/image/kernels_scalar.h"

namespace skytrain::image {
namespace {

constexpr int kTries = 10;

// By Box and Muller; of the pair that two uniform numbers give, one is used.
float draw_normal(KeyedRandom& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.uniform()));
}

void put(void* elements, int64_t at, ElementType type, float value) {
  if (type == ElementType::kFloat32) {
    static_cast<float*>(elements)[at] = value;
  } else if (type == ElementType::kBfloat16) {
    static_cast<uint16_t*>(elements)[at] = scalar::to_bfloat16(value);
  }
}

}  // namespace

Region draw_erasure(const RandomErasing& erasing, const Size& sample, KeyedRandom& random) {
  if (!random.chance(erasing.probability)) return {};
  const double log_min = std::log(erasing.min_ratio), log_max = std::log(erasing.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area =
        static_cast<double>(sample.width * sample.height) * random.uniform(erasing.min_area, erasing.max_area);
    const double ratio = std::exp(random.uniform(log_min, log_max));
    Region region;
    region.height = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio)));
    region.width = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (region.height >= sample.height || region.width >= sample.width) continue;
    region.top = static_cast<int64_t>(random.integer(static_cast<uint64_t>(sample.height - region.height + 1)));
    region.left = static_cast<int64_t>(random.integer(static_cast<uint64_t>(sample.width - region.width + 1)));
    return region;
  }
  return {};
}

void erase(const Region& region, const RandomErasing& erasing, const Size& sample, const OutputSpec& output,
           KeyedRandom& random, void* elements) {
  const bool chw = output.layout == Layout::kChw;
  const int64_t channel = chw ? sample.width * sample.height : 1, column = chw ? 1 : 3;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = region.top; y < region.top + region.height; ++y) {
      for (int64_t x = region.left; x < region.left + region.width; ++x) {
        const float value = erasing.noise ? draw_normal(random) : erasing.value[c];
        put(elements, c * channel + (y * sample.width + x) * column, output.type, value);
      }
    }
  }
}

}  // namespace skytrain::image
