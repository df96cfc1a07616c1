// skytrain/base/stop_signal.h
//
// SIGINT, SIGTERM and SIGUSR1 as one request that everything polls. The first request asks for "save and stop"; the
// second for "stop now". SIGUSR1 is a notice (Slurm's --signal=USR1@60, a spot machine's): it asks once, and SIGTERM
// may follow it without meaning "now". Handlers only set atomics and write to a pipe.

#pragma once
#include <cstdint>
#include <optional>

namespace skytrain {

class StopSignal {
 public:
  // Signals closer together than this are one request: timeout(1) and other supervisors signal a process and then its
  // whole group.
  static constexpr int64_t kSameRequestMs = 100;

  // Installs handlers for SIGINT, SIGTERM, SIGUSR1 (and ignores SIGPIPE). Call once, from main, before threads start.
  static void install();
  // 0: none, 1: save and stop, 2 or more: stop now. Async-signal-safe, thread-safe.
  static int requests();
  // The last signal's number, 0 if none.
  static int last_signal();
  // For poll(): one byte a request is waiting in it (non-blocking); read it away to wait for the next. -1 before
  // install().
  static int fd();
  // When a signal first announced that a kill will follow (SIGTERM and SIGUSR1; SIGINT does not), in monotonic seconds.
  static std::optional<double> announced();
  // As if a signal had come (a stop message from the agent).
  static void request();
  static void reset_for_test();
};

}  // namespace skytrain
