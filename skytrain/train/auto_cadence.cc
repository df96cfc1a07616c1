#include "skytrain/train/auto_cadence.h"

#include <algorithm>
#include <cmath>

namespace skytrain::train {
namespace {

// Of the moving averages.
constexpr double kOfNewStep = 0.1, kOfNewSave = 0.5;

}  // namespace

double checkpoint_interval(double cost, double mtbf) {
  if (cost >= 2 * mtbf) return mtbf;
  const double ratio = cost / (2 * mtbf);
  return std::sqrt(2 * cost * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

void AutoCadence::step(double seconds, double waited, bool beside) {
  const double own = seconds - waited;
  if (beside) {
    current_ += waited;
    if (usual_ > 0) current_ += own - usual_;  // faster ones count too, or noise would add up
  } else {
    usual_ = usual_ > 0 ? usual_ + kOfNewStep * (own - usual_) : own;
  }
}

void AutoCadence::saved(double seconds_of_save) {
  const double taken = std::max(current_, 0.0);
  cost_ = measured_ ? cost_ + kOfNewSave * (taken - cost_) : taken;
  measured_ = true;
  current_ = 0;
  duration_ = seconds_of_save;
}

double AutoCadence::interval() const {
  return std::max(checkpoint_interval(std::max(cost_, 1e-3), mtbf_), kLeastSaves * duration_);
}

}  // namespace skytrain::train
