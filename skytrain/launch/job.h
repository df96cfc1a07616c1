// skytrain/launch/job.h
//
// A foreign program as a job on this machine, or this machine's part of a job on several: its ranks are started,
// watched, given notice, ended together and, when one fails, started again. One job a process: it owns StopSignal and
// becomes the parent of orphans. One caller.

#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/process.h"
#include "skytrain/launch/folder_commit.h"
#include "skytrain/launch/node_options.h"

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
  std::optional<NodeOptions> nodes;  // several machines, each with `ranks` of its own
};

struct RankEnd {
  ExitStatus status;
  double monotonic_seconds = 0;  // when
  bool killed = false;           // it was given its time and did not use it
  bool lost = false;             // what watched it was killed, and it with that
};

// Why an attempt came to nothing: a rank, or, where `cause` says so, a machine of the job.
struct Failure {
  int rank = 0;  // in the job
  RankEnd end;
  bool oom_killer_struck = false;  // somewhere on its machine, while it ran
  double grace_seconds = 0;        // that it had
  std::string last_words;          // of the rank, lines
  int node = -1;                   // number of its machine; -1: there is one
  std::string host;
  std::string cause, cause_hint;  // "": the rank
  int cause_code = 0;             // exit code
};

struct JobEnd {
  enum class Kind { kDone, kInterrupted, kFailed, kAborted };
  Kind kind = Kind::kDone;
  std::optional<Failure> failure;  // the first one, of the last attempt
  int restarts = 0;
  std::vector<RankEnd> ranks;          // of this machine, of the last attempt; empty: it was not started
  int first_rank = 0, world_size = 0;  // of that attempt; 0: it was not started
  int node_rank = 0;
  std::vector<std::string> committed;  // paths, oldest first
  int exit_code() const;
};

// What a shell would say of it: the exit code, or 128 + the signal's number.
int shell_code(const ExitStatus& status);
// "rank 3", "rank 3 (node 1, host b)", "node 1 (host b)".
std::string name_of(const Failure& failure);
// "exited with code 3", "was killed by SIGKILL (9): it had not ended within 30 s".
std::string describe(const Failure& failure);

// REQUIRES: StopSignal is installed. Prints what happens on stderr. Throws Error(kEnvironment) when the program can't
// be started or nothing could be committed at the end; no process of the job is left, whatever happens.
JobEnd run_job(const JobOptions& options);

}  // namespace skytrain::launch
