#include "skytrain/train/progress_reporter.h"

#include <utility>

namespace skytrain::train {
namespace {

constexpr double kSeconds = 0.1;

}  // namespace

void ProgressReporter::step(StepReport report, bool last, uint64_t samples, double seconds) {
  samples_ += samples;
  seconds_ += seconds;
  report.first = !std::exchange(stepped_, true);
  const double now = clock_.monotonic_seconds();
  if (!report.first && !last && now - last_report_ < kSeconds) return;
  report.samples_per_second = seconds_ > 0 ? double(samples_) / seconds_ : 0;
  report.unix_seconds = clock_.unix_seconds();
  observer_.progress(report);
  last_report_ = now;
  samples_ = 0;
  seconds_ = 0;
}

}  // namespace skytrain::train
