// skytrain/train/run_log.h
//
// The training side of a run's records: metrics.jsonl and TensorBoard scalars, written together.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/record/metrics.h"
#include "skytrain/record/tensorboard.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

class RunLog {
 public:
  // Drops records beyond resume_step; with redo_evaluation also evaluations of that step, which will be done again.
  RunLog(FileSystem& fs, Clock& clock, const std::string& run_directory, uint64_t resume_step,
         uint64_t samples_per_epoch, uint64_t generation, bool redo_evaluation);

  // Writes the line of the steps since the last one (state.log_*) and resets them; sets state.last_loss. samples:
  // consumed.
  void write_step(RunState& state, uint64_t samples, double lr);
  void write_evaluation(const Evaluation& evaluation, uint64_t samples);
  void flush();  // hands everything to the operating system
  // The metrics written so far are on the disk when it returns. May be called by another thread than the rest.
  void sync();

 private:
  Clock& clock_;
  record::MetricsWriter metrics_;
  record::TensorBoardWriter events_;
  uint64_t samples_per_epoch_, generation_;
};

}  // namespace skytrain::train
