// skytrain/elastic/worker_process.h
//
// Runs one skytrain-worker from its start to its end: starts it with its end of a socket pair, hands it the recipe,
// passes on what it reports, carries stop requests to it, and tells how it ended. Not thread-safe: one caller.
//
// The first stop request (StopSignal) is passed on, so that the worker saves and ends; the second kills it. The worker
// and whatever it started are a process group of their own, so the terminal's Ctrl-C does not reach them.

#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/proto/messages.h"

namespace skytrain::elastic {

// Told what the worker reports, in its order, on the thread that called run_worker.
class WorkerObserver {
 public:
  virtual ~WorkerObserver() = default;
  virtual void on_hello(const proto::Hello&) {}
  virtual void on_started(const proto::Started&) {}
  virtual void on_progress(const proto::ProgressReport&) {}
  virtual void on_note(const proto::Note&) {}
  virtual void on_checkpoint(const proto::CheckpointDone&) {}
  virtual void on_evaluation(const proto::EvaluationDone&) {}
  // The first stop request has been passed on. seconds: until the worker is killed; none: there is no such time.
  virtual void on_stopping(std::optional<double> /*seconds*/) {}
};

struct WorkerOptions {
  std::string program;                   // see worker_location.h
  std::string log_file;                  // its stdout and stderr are appended
  proto::Message order;                  // Start, Evaluate or Trace
  std::vector<std::pair<int, int>> fds;  // (ours, number in the worker), beside its socket
  double handshake_seconds = 120;        // from its start to its hello: LibTorch may come over a slow network disk
  double exit_seconds = 10;              // from its last word to its end
  // From a signal that announces a kill (StopSignal::announced()) to that kill: the worker is told how long it has, and
  // killed a little before if it is not done. Infinite: it is waited for.
  double grace_seconds = std::numeric_limits<double>::infinity();
};

struct WorkerEnd {
  // How it ended. An Error: what the worker reported (Failed), kLostWorkers when it died, kEnvironment when it could
  // not be loaded, kAborted on a second stop request, kInternal when it did not keep to the protocol. An Interrupted
  // whose summary is null: it was not done when the grace ended, and was killed.
  std::variant<proto::Finished, proto::Interrupted, Error> outcome;
  uint64_t peak_rss_bytes = 0;  // as the kernel counted it
  bool progressed = false;      // it had done a step of its own
  bool died = false;            // without a word: the outcome is an Error that tells how
  Json recipe;                  // with every auto decided, as it said when it had started; null: it had not
};

// Throws Error(kEnvironment) when the program can't be started at all. No process of the worker's group is left when it
// returns, unless that process took itself out of the group.
WorkerEnd run_worker(const WorkerOptions& options, WorkerObserver& observer);

}  // namespace skytrain::elastic
