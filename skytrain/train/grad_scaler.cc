#include "skytrain/train/grad_scaler.h"

#include <cmath>

namespace skytrain::train {

void GradScaler::update(bool found_inf) {
  if (found_inf) {
    scale_ = float(double(scale_) * options_.backoff_factor);
    growth_tracker_ = 0;
    return;
  }
  if (++growth_tracker_ < options_.growth_interval) return;
  const float larger = float(double(scale_) * options_.growth_factor);
  if (std::isfinite(larger)) scale_ = larger;
  growth_tracker_ = 0;
}

Json GradScaler::to_json() const { return {{"scale", double(scale_)}, {"growth_tracker", growth_tracker_}}; }

void GradScaler::from_json(const Json& json) {
  scale_ = float(json.at("scale").get<double>());
  growth_tracker_ = json.at("growth_tracker");
}

}  // namespace skytrain::train
