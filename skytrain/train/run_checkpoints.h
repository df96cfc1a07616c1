// skytrain/train/run_checkpoints.h
//
// When a run saves, and what it does about a save that is slow or fails.
//
// Saves go on beside the training (SavedState). One that is due while another is being written waits for it, a while,
// when a step of the run made it due, and is taken later when the clock did. A save that fails is no reason to stop
// training: the next one is tried, up to kMostFailures in a row.
//
// Between them the state is kept in memory (where SavedState has some that outlives the worker) as often as costs next
// to nothing.

#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/auto_cadence.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/run_log.h"
#include "skytrain/train/run_plan.h"
#include "skytrain/train/run_state.h"
#include "skytrain/train/saved_state.h"
#include "skytrain/train/trainer.h"

namespace skytrain::train {

class RunCheckpoints {
 public:
  static constexpr int kMostFailures = 3;
  static constexpr double kMostSecondsOfWaiting = 30;

  // All of these outlive this object. log: its lines are on the disk before a checkpoint of their step counts.
  // complete: called before a save, brings the state that is given to the calls below up to date. stop: as of train();
  // deadline: TrainOptions::deadline. state: as the run begins.
  RunCheckpoints(Clock& clock, const recipe::CheckpointSpec& spec, SavedState& saved, Engine& engine, RunLog& log,
                 TrainObserver& observer, std::function<void()> complete, const std::function<bool()>& stop,
                 const std::function<std::optional<double>()>& deadline, const RunState& state);
  ~RunCheckpoints();  // waits for the save that is going on
  RunCheckpoints(const RunCheckpoints&) = delete;
  RunCheckpoints& operator=(const RunCheckpoints&) = delete;

  // After a step: takes note of a save that has ended, and begins one that is due. Throws Error(kDiverged) when a
  // weight was not finite, and what the last of kMostFailures threw.
  void after_step(RunState& state, const RunPlan& plan, double step_seconds);
  // At once, whatever else; returns when it is committed. Nothing to do when the state is saved already.
  //
  // With a deadline it returns before that, and saved() tells: a save that is going on is finished first, unless the
  // newest state fits only in its place. What does not fit is not written, or given up, and a note tells of it at once;
  // one that fails is tried again as long as there is time.
  void save_now(RunState& state, const RunPlan& plan);
  // Begins a save, for another reason than time.
  void save(RunState& state, const RunPlan& plan);
  // Returns when no save is going on; a failure is a note to the observer.
  void settle(RunState& state);

  // For Engine::set_before_update(): waits until what is being copied may change.
  void wait_for_snapshot();
  bool saved(uint64_t step) const;  // committed

  struct Figures {
    uint64_t saves = 0, bytes = 0;         // committed; of a file
    double blocked = 0, most_blocked = 0;  // seconds that training waited for saves beside it, and for one of them
    double last = 0;                       // seconds of the last save, from its beginning to its end
    uint64_t memory_saves = 0;             // into memory only
  };
  const Figures& figures() const { return figures_; }

 private:
  bool due_by_time(const RunPlan& plan) const;
  bool memory_save_due() const;
  void start_memory_save(const RunState& state, const RunPlan& plan);
  void start(RunState& state, const RunPlan& plan);
  bool wait_for_other(RunState& state);
  void finish(RunState& state);
  void finish_quietly(RunState& state);
  void save_before(RunState& state, const RunPlan& plan, double deadline);
  void not_saved(RunState& state, uint64_t step);
  void failed(const Error& error);

  Clock& clock_;
  const recipe::CheckpointSpec spec_;
  SavedState& saved_;
  Engine& engine_;
  RunLog& log_;
  TrainObserver& observer_;
  const std::function<void()> complete_;
  const std::function<bool()>& stop_;
  const std::function<std::optional<double>()>& deadline_;
  // RunState::best_steps of the last checkpoint, and of the one that is being saved: those have checkpoints.
  std::vector<std::pair<uint64_t, double>> best_saved_, best_saving_;
  std::optional<AutoCadence> auto_;
  double last_save_, started_ = 0;
  double last_in_memory_, memory_seconds_ = 0;  // when the last state in memory was begun, and what it took
  double blocked_in_step_ = 0;
  double blocked_ = 0;          // seconds that training waited, not in RunState::checkpoint_seconds yet
  double blocked_by_save_ = 0;  // by the one that is going on
  int failures_ = 0;            // in a row
  Figures figures_;
};

}  // namespace skytrain::train
