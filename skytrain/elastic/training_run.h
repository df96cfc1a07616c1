// skytrain/elastic/training_run.h
//
// A training run with a worker that is replaced when it dies: the next one goes on from the last state in memory, which
// this program holds, or from the newest checkpoint. Not thread-safe: one caller.

#pragma once
#include <cstdint>

#include "skytrain/elastic/worker_process.h"

namespace skytrain::elastic {

class TrainingObserver : public WorkerObserver {
 public:
  // A worker died, and the next one is started: the n-th of max_restarts.
  virtual void on_restart(const Error& /*death*/, int64_t /*n*/, int64_t /*max_restarts*/) {}
};

// options.order: a proto::Start, whose keep_snapshot is set here. A worker that dies before it has done a step is not
// replaced: the next one would do the same. See run_worker().
WorkerEnd run_training(WorkerOptions options, int64_t max_restarts, TrainingObserver& observer);

}  // namespace skytrain::elastic
