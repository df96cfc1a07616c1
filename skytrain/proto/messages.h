// skytrain/proto/messages.h
//
// What skytrain and skytrain-worker say to each other. Every message is a JSON object with "type". The worker speaks
// first with Hello; a front program that does not know its protocol refuses by name (both versions in the error).
//
//   worker -> front: hello, started, progress, note, checkpoint, evaluation, then exactly one of
//                    finished | interrupted | failed
//   front -> worker: one order, start | evaluate | trace; then perhaps stop (save and end)
//
// A front program that goes away (end of file) is a stop request: the worker saves and ends.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"

namespace skytrain::proto {

inline constexpr int kProtocolVersion = 3;
// The worker finds its end of the socket at this descriptor.
inline constexpr int kWorkerFd = 3;
// The run's lock, inherited so that the run stays locked while the worker lives.
inline constexpr int kLockFd = 4;
// Memory that outlives a worker, for the last snapshot of its state (checkpoint/memory_snapshot.h).
inline constexpr int kSnapshotFd = 5, kSnapshotManifestFd = 6;

struct Hello {
  int protocol = kProtocolVersion;
  std::string version;        // of the build: SKYTRAIN_VERSION
  std::string torch_version;  // "2.11.0"
};

struct Start {
  Json recipe;                // recipe::to_json
  std::string run_directory;  // absolute
  bool resume = false;        // continue from the newest valid checkpoint, if there is one
  uint64_t log_every = 0;     // steps between metrics lines; 0: a hundredth of an epoch, 1 to 50
  bool keep_snapshot =
      false;  // in kSnapshotFd, from which a resumed run goes on when it is newer than what is on the disk
};

// Evaluate a model on data.eval: answered by evaluation, then finished with the summary, or failed.
struct Evaluate {
  Json recipe;             // recipe::to_json; its model.init is the weights when there is no checkpoint
  std::string checkpoint;  // a committed checkpoint's folder, or ""
};

// Write a model as TorchScript: answered by finished, or failed.
struct Trace {
  Json recipe;
  std::string checkpoint;  // as of Evaluate
  std::string output;      // the file to write, absolute
};

struct Started {
  uint64_t resume_step = 0;  // 0: from the beginning
  uint64_t resume_samples = 0;
  uint64_t total_steps = 0, total_samples = 0, samples_per_epoch = 0;
  int64_t parameters = 0;
  int64_t devices = 0;  // replicas
  int64_t slot = 0;
  std::string precision;                                       // "fp32" | "bf16" | "fp16"
  std::vector<std::pair<std::string, std::string>> decisions;  // key path, reason: what auto decided
  Json recipe;                                                 // with every auto filled in
};

struct ProgressReport {
  uint64_t step = 0, samples = 0;
  double epoch = 0, loss = 0, lr = 0, samples_per_second = 0;
  double unix_seconds = 0;  // when the step was done
  bool first = false;       // the first step of this process
};

struct Note {
  std::string level;  // "info" | "warning"
  std::string line;
};

struct CheckpointDone {
  uint64_t step = 0, samples = 0;
  std::string path;
  double seconds = 0;  // that training waited
};

struct EvaluationDone {
  uint64_t step = 0, samples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  // ("top1", 0.97), …, in the order to show them
  double seconds = 0;
};

struct Interrupted {  // saved, if there was time; exit 75
  uint64_t step = 0, samples = 0;
  std::string checkpoint;                      // the newest; "": there is none
  uint64_t saved_step = 0, saved_samples = 0;  // of that one: what lies between will be trained again
  Json summary;                                // as Finished's
};

struct Finished {
  Json summary;  // as in docs/run-directory.md, without what only the front program knows
};

struct Failed {
  ErrorKind kind = ErrorKind::kInternal;
  std::string where, problem, hint;
};

struct Stop {
  std::optional<double> seconds;  // until all must be done; none: as long as it takes
};

using Message = std::variant<Hello, Start, Evaluate, Trace, Started, ProgressReport, Note, CheckpointDone,
                             EvaluationDone, Interrupted, Finished, Failed, Stop>;

Json encode(const Message& message);
// Throws Error(kInternal) on an unknown type or a missing field, naming it.
Message decode(const Json& json);

// Throws Error(kEnvironment): "skytrain-worker speaks protocol 2, this skytrain speaks 1", hint: install both from the
// same build.
void check_protocol(const Hello& hello);

}  // namespace skytrain::proto
