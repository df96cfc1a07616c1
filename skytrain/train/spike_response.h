// skytrain/train/spike_response.h
//
// What a run does about a loss far above those before (spike_watch.h finds it): train.loss_spike.action.

#pragma once
#include <string>

#include "skytrain/train/engine.h"
#include "skytrain/train/run_checkpoints.h"
#include "skytrain/train/run_plan.h"
#include "skytrain/train/saved_state.h"
#include "skytrain/train/spike_watch.h"
#include "skytrain/train/trainer.h"

namespace skytrain::train {

class SpikeResponse {
 public:
  // All of these outlive this object.
  SpikeResponse(SpikeWatch& watch, const recipe::LossSpikeSpec& spec, SavedState& saved, RunCheckpoints& checkpoints,
                Engine& engine, TrainObserver& observer)
      : watch_(watch),
        rolls_back_(spec.action == "rollback"),
        saved_(saved),
        checkpoints_(checkpoints),
        engine_(engine),
        observer_(observer) {}

  // After the step that state.step counts. skipped: its update was not made, because of its loss.
  void observe(double loss, bool skipped, RunState& state, const RunPlan& plan, const DataFeed& feed);

 private:
  std::string roll_back(RunState& state);

  SpikeWatch& watch_;
  const bool rolls_back_;
  SavedState& saved_;
  RunCheckpoints& checkpoints_;
  Engine& engine_;
  TrainObserver& observer_;
};

}  // namespace skytrain::train
