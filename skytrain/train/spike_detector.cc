#include "skytrain/train/spike_detector.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace skytrain::train {

SpikeDetector::SpikeDetector(double threshold, uint64_t window) : threshold_(threshold), window_(window) {}

double SpikeDetector::deviation() const { return std::sqrt(variance_); }

double SpikeDetector::limit() const {
  // Nearly constant losses have next to no deviation: a thousandth of the loss is never a spike.
  const double least = 1e-3 * std::abs(mean_);
  return seen_ < window_ ? std::numeric_limits<double>::infinity() : mean_ + threshold_ * std::max(deviation(), least);
}

void SpikeDetector::observe(double loss) {
  ++seen_;
  in_a_row_ = 0;
  // Weighted like a plain mean until the window is full, so that the first steps do not count for ever.
  const double weight = 1 / double(std::min(seen_, window_));
  const double difference = loss - mean_;
  mean_ += weight * difference;
  variance_ = (1 - weight) * (variance_ + weight * difference * difference);
}

bool SpikeDetector::observe_spike() {
  if (++in_a_row_ < kMostInARow) return false;
  seen_ = in_a_row_ = 0;
  mean_ = variance_ = 0;
  return true;
}

Json SpikeDetector::to_json() const {
  return {{"seen", seen_}, {"in_a_row", in_a_row_}, {"mean", mean_}, {"variance", variance_}};
}

void SpikeDetector::from_json(const Json& json) {
  seen_ = json.at("seen");
  in_a_row_ = json.value("in_a_row", uint64_t{0});
  mean_ = json.at("mean");
  variance_ = json.at("variance");
}

}  // namespace skytrain::train
