// skytrain/base/cpu_clock.h
//
// Time on processors, for measurements: on a busy machine the clock on the wall measures the others too.

#pragma once
#include <ctime>

namespace skytrain {

inline double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of all threads of this process since it began.
inline double process_cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
// Of the calling thread.
inline double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace skytrain
