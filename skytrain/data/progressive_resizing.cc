#include "skytrain/data/progressive_resizing.h"

#include <algorithm>
#include <cmath>

namespace skytrain::data {

image::Size size_at(const recipe::ProgressiveResizingSpec& spec, const image::Size& full, double progress) {
  const double full_from = 1 - spec.finetune_fraction;
  if (progress >= full_from) return full;
  double scale = spec.initial_scale;
  if (progress > spec.delay_fraction) {
    scale += (1 - scale) * (progress - spec.delay_fraction) / (full_from - spec.delay_fraction);
  }
  const auto scaled = [&](int64_t length) {
    const int64_t steps = std::llround(scale * static_cast<double>(length) / static_cast<double>(spec.size_increment));
    return std::min(length, std::max<int64_t>(1, steps) * spec.size_increment);
  };
  return {scaled(full.width), scaled(full.height)};
}

}  // namespace skytrain::data
