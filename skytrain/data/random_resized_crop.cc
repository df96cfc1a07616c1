#include "skytrain/data/random_resized_crop.h"

#include <algorithm>
#include <cmath>

#include "skytrain/data/mix.h"

namespace skytrain::data {
namespace {

constexpr uint64_t kTries = 10;

double between(double low, double high, uint64_t bits) { return low + (high - low) * unit_interval(bits); }

}  // namespace

RandomResizedCrop::RandomResizedCrop(const recipe::TransformSpec& transform) {
  if (transform.scale.size() == 2) least_scale_ = transform.scale[0], most_scale_ = transform.scale[1];
  if (transform.ratio.size() == 2) least_ratio_ = transform.ratio[0], most_ratio_ = transform.ratio[1];
}

image::Region RandomResizedCrop::region(const image::Size& size, uint64_t key) const {
  const double area = static_cast<double>(size.width) * static_cast<double>(size.height);
  for (uint64_t i = 0; i < kTries; ++i) {
    const double wanted = area * between(least_scale_, most_scale_, random_bits(key, 3 * i));
    const double ratio = std::exp(between(std::log(least_ratio_), std::log(most_ratio_), random_bits(key, 3 * i + 1)));
    const auto width = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * ratio)));
    const auto height = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / ratio)));
    if (width < 1 || width > size.width || height < 1 || height > size.height) continue;
    const uint64_t bits = random_bits(key, 3 * i + 2);
    const auto place = [](uint32_t part, int64_t places) {
      return static_cast<int64_t>(below(part, static_cast<uint64_t>(places)));
    };
    return {place(static_cast<uint32_t>(bits), size.width - width + 1),
            place(static_cast<uint32_t>(bits >> 32), size.height - height + 1), width, height};
  }
  image::Region region{0, 0, size.width, size.height};
  const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (ratio < least_ratio_) {
    region.height = static_cast<int64_t>(std::nearbyint(static_cast<double>(size.width) / least_ratio_));
  } else if (ratio > most_ratio_) {
    region.width = static_cast<int64_t>(std::nearbyint(static_cast<double>(size.height) * most_ratio_));
  }
  region.width = std::max<int64_t>(1, std::min(region.width, size.width));
  region.height = std::max<int64_t>(1, std::min(region.height, size.height));
  region.left = (size.width - region.width) / 2;
  region.top = (size.height - region.height) / 2;
  return region;
}

}  // namespace skytrain::data
