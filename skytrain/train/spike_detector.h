// skytrain/train/spike_detector.h
//
// Finds losses far above those of the steps before.

#pragma once
#include <cstdint>

#include "skytrain/base/json.h"

namespace skytrain::train {

// Exponential moving mean and variance of the loss over about `window` steps. A loss beyond mean + threshold standard
// deviations is a spike, and does not enter the statistics. The first window of steps is only learned from. After
// kMostInARow spikes the level has changed for good, and is learned anew: a run whose steps are skipped for their
// losses would otherwise never make one again.
class SpikeDetector {
 public:
  static constexpr uint64_t kMostInARow = 10;
  // threshold > 0, window >= 2.
  SpikeDetector(double threshold, uint64_t window);

  // The largest loss that is no spike; infinity while learning.
  double limit() const;
  // After a step with this mean loss, which was no spike.
  void observe(double loss);
  // After a step that was one. True: it was the last of kMostInARow.
  bool observe_spike();

  double mean() const { return mean_; }
  double deviation() const;

  Json to_json() const;
  void from_json(const Json& json);  // throws Json::exception

 private:
  double threshold_;
  uint64_t window_, seen_ = 0, in_a_row_ = 0;
  double mean_ = 0, variance_ = 0;
};

}  // namespace skytrain::train
