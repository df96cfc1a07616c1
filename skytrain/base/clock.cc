#include "skytrain/base/clock.h"

#include <cmath>
#include <cstdio>
#include <ctime>

namespace skytrain {
namespace {

double seconds_of(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class RealClock final : public Clock {
 public:
  double unix_seconds() const override { return seconds_of(CLOCK_REALTIME); }
  double monotonic_seconds() const override { return seconds_of(CLOCK_MONOTONIC); }
  void sleep_seconds(double seconds) override {
    if (!(seconds > 0)) return;
    timespec left{};
    left.tv_sec = static_cast<time_t>(seconds);
    left.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    while (nanosleep(&left, &left) != 0) {
    }
  }
};

}  // namespace

Clock& Clock::real() {
  static RealClock* const clock = new RealClock;  // never destroyed: threads may ask for the time while exiting
  return *clock;
}

std::string format_utc(double unix_seconds, bool compact) {
  const auto whole = static_cast<time_t>(std::floor(unix_seconds));
  tm parts{};
  gmtime_r(&whole, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, compact ? "%Y%m%dT%H%M%SZ" : "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

}  // namespace skytrain
