// skytrain/train/progress_reporter.h
//
// Tells an observer how far training is: the first step of a process, the last one, and no more than ten a second
// between.

#pragma once
#include <cstdint>

#include "skytrain/base/clock.h"
#include "skytrain/train/trainer.h"

namespace skytrain::train {

class ProgressReporter {
 public:
  // Both outlive this object.
  ProgressReporter(Clock& clock, TrainObserver& observer) : clock_(clock), observer_(observer) {}

  // After each step. report: without rate, time and `first`. samples, seconds: of this step alone.
  void step(StepReport report, bool last, uint64_t samples, double seconds);

 private:
  Clock& clock_;
  TrainObserver& observer_;
  bool stepped_ = false;
  double last_report_ = 0;
  uint64_t samples_ = 0;  // since the last report
  double seconds_ = 0;
};

}  // namespace skytrain::train
