// skytrain/train/trainer.h
//
// A whole training run: data, steps, evaluation, records, checkpoints, resume.

#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/checkpoint/memory_snapshot.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

struct TrainOptions {
  recipe::Recipe recipe;
  std::string run_directory;  // exists
  bool resume = false;        // continue from the newest valid checkpoint there, if there is one
  // Where the last state is kept for a worker that comes after this one; none: nowhere.
  std::optional<checkpoint::MemorySnapshot> memory;
  uint64_t log_every = 0;  // steps between metrics lines; 0: RunPlan::default_log_every()
  // Asked once `stop` has said true: when all must be done, in monotonic seconds of the clock; none, or empty: there is
  // no such time.
  std::function<std::optional<double>()> deadline;
};

struct RunStarted {
  uint64_t resume_step = 0, resume_samples = 0, total_steps = 0, total_samples = 0, samples_per_epoch = 0;
  int64_t parameters = 0;
  std::vector<std::pair<std::string, std::string>> decisions;
  recipe::Recipe recipe;  // every auto filled in
};

struct StepReport {
  uint64_t step = 0, samples = 0;
  double epoch = 0, loss = 0, lr = 0, samples_per_second = 0, unix_seconds = 0;
  bool first = false;  // of this process
};

// Told of what happens, on the training thread. Calls must be quick.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void started(const RunStarted&) = 0;
  virtual void progress(const StepReport&) = 0;  // the first step, then at most ten times a second
  virtual void note(bool warning, const std::string& line) = 0;
  virtual void checkpoint_saved(uint64_t step, uint64_t samples, const std::string& path, double seconds) = 0;
  virtual void evaluated(const Evaluation&) = 0;
};

struct TrainOutcome {
  bool interrupted = false;  // stopped on request; the state is saved, if there was time
  RunState state;
  uint64_t samples = 0;
  std::string checkpoint;                      // newest one; "" when there is none
  uint64_t saved_step = 0, saved_samples = 0;  // of it
  OrderedJson summary;                         // docs/run-directory.md, without what only the front program knows
};

// stop: polled between steps, and between batches of an evaluation by all replicas at once; true asks for "save and
// end".
// Throws Error: kData, kRecipe, kEnvironment; kDiverged when loss, gradients or weights became NaN or infinite (the
// last good checkpoint is kept).
TrainOutcome train(FileSystem& fs, Clock& clock, const TrainOptions& options, TrainObserver& observer,
                   const std::function<bool()>& stop);

}  // namespace skytrain::train
