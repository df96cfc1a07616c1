// skytrain/launch/rank_shim.h
//
// The small process between the agent (`skytrain run`) and a rank's command. It is a subreaper, so nothing that the
// command starts gets away, and it holds one end of a socket pair: when the agent is gone, by kill -9 too, that end
// says so, and the shim kills all that descends from it. It is the agent's own program, run again with a hidden first
// word.
//
// On the socket: fixed-size structs in the machine's own form, as both ends are the same program on one machine.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace skytrain::launch {

inline constexpr char kShimVerb[] = "__rank";  // SHIM __rank PROGRAM ARGV0 ARGS...
inline constexpr int kShimFd = 3;              // its end of the socket pair
inline constexpr char kNoticeVariable[] = "SKYTRAIN_NOTICE_FILE";

struct ShimOrder {
  enum class What : int32_t { kSignal, kSignalGroup, kKillAll };
  What what = What::kSignal;
  int32_t signo = 0;
};

struct ShimReport {
  // kStarted, then kEnded (the command), then kCleaned (all that it had left behind is gone too); or kNotStarted alone.
  enum class What : int32_t { kStarted, kNotStarted, kEnded, kCleaned };
  What what = What::kStarted;
  int32_t pid = 0;               // kStarted: of the command
  int32_t signalled = 0;         // kEnded: it was killed by a signal,
  int32_t code = 0;              // whose number this is; else its exit code
  int32_t count = 0;             // kCleaned: processes that had to be killed
  int32_t stuck = 0;             // kCleaned: those that SIGKILL did not end in time
  double monotonic_seconds = 0;  // kEnded: when
  char text[240] = {};           // kNotStarted: why; kCleaned: names of the processes
};

// What the program of the agent and of the shim is, also within a bundle, where /proc/self/exe is the loader.
std::string shim_program();

// The shim's main(); words: PROGRAM ARGV0 ARGS... Signals that others send to the shim are left unanswered: a
// supervisor that signals all processes of a job has signalled the command itself. Ends when nothing is left below it.
int run_shim(const std::vector<std::string>& words);

}  // namespace skytrain::launch
