// skytrain/launch/job.h
//
// A foreign program as a job on this machine: its ranks are started, watched, given notice, ended together and, when
// one fails, started again. One job a process: it owns StopSignal and becomes the parent of orphans. One caller.

#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/process.h"
#include "skytrain/launch/folder_commit.h"

namespace skytrain::launch {

struct JobOptions {
  std::string program;               // find_program() of command[0]
  std::vector<std::string> command;  // passed on as it is
  std::string shim;                  // shim_program()
  int ranks = 1;
  int max_restarts = 0;           // of all ranks together, in the job's life
  double grace_seconds = 30;      // from a notice, or from the failure of a rank, to SIGKILL
  int notice_signal = SIGTERM;    // SIGTERM: to each rank's group; SIGUSR1: to its process only
  std::string log_directory;      // "": none
  bool stdout_to_stderr = false;  // ranks print to our stderr only
  std::optional<CommitOptions> commit;
};

struct RankEnd {
  ExitStatus status;
  double monotonic_seconds = 0;  // when
  bool killed = false;           // it was given its time and did not use it
  bool lost = false;             // what watched it was killed, and it with that
};

struct Failure {
  int rank = 0;
  RankEnd end;
  bool oom_killer_struck = false;  // somewhere on this machine, while it ran
  std::string last_words;          // of the rank, lines
};

struct JobEnd {
  enum class Kind { kDone, kInterrupted, kFailed, kAborted };
  Kind kind = Kind::kDone;
  std::optional<Failure> failure;  // the first rank that failed, of the last attempt
  int restarts = 0;
  std::vector<RankEnd> ranks;          // of the last attempt; empty: it was not started
  std::vector<std::string> committed;  // paths, oldest first
  int exit_code() const;
};

// What a shell would say of it: the exit code, or 128 + the signal's number.
int shell_code(const ExitStatus& status);
// "exited with code 3", "was killed by SIGKILL (9): it had not ended within 30 s".
std::string describe(const Failure& failure, double grace_seconds);

// REQUIRES: StopSignal is installed. Prints what happens on stderr. Throws Error(kEnvironment) when the program can't
// be started or nothing could be committed at the end; no process of the job is left, whatever happens.
JobEnd run_job(const JobOptions& options);

}  // namespace skytrain::launch
