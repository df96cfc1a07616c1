// skytrain/base/clock.h
//
// The only source of time. Real programs use Clock::real(); tests use FakeClock and move time by hand.

#pragma once
#include <atomic>
#include <string>

namespace skytrain {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since the Unix epoch (may jump); for records only.
  virtual double unix_seconds() const = 0;
  // Seconds of a clock that never goes back; for durations and deadlines.
  virtual double monotonic_seconds() const = 0;
  virtual void sleep_seconds(double seconds) = 0;

  // The system's clocks. Thread-safe, never destroyed.
  static Clock& real();
};

// Starts at `unix_start`; sleeping advances it at once. Thread-safe.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(double unix_start = 1'700'000'000.0) : unix_start_(unix_start) {}
  double unix_seconds() const override { return unix_start_ + elapsed_; }
  double monotonic_seconds() const override { return elapsed_; }
  void sleep_seconds(double seconds) override { elapsed_ += seconds; }
  void advance(double seconds) { elapsed_ += seconds; }

 private:
  double unix_start_;
  std::atomic<double> elapsed_ = 0;
};

// "2026-11-30T13:50:07Z"; with `compact` "20261130T135007Z" (sorts by time, safe in file names).
std::string format_utc(double unix_seconds, bool compact = false);

}  // namespace skytrain
