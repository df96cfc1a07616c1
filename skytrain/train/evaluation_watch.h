// skytrain/train/evaluation_watch.h
//
// What follows from an evaluation: the rate of a plateau schedule, which checkpoint is the best, and when a run has
// stopped becoming better. All that it remembers is in RunState.

#pragma once
#include <optional>

#include "skytrain/recipe/recipe.h"
#include "skytrain/train/run_state.h"
#include "skytrain/train/schedule.h"

namespace skytrain::train {

class EvaluationWatch {
 public:
  // Throws Error(kRecipe) when the recipe follows a metric that its data does not have. of_classes: its targets.
  EvaluationWatch(const recipe::Recipe& recipe, bool of_classes);

  // Takes up the state of a checkpoint.
  void restored(RunState& state);

  // After state.evaluation was made. Returns true when the checkpoint of this step is to be kept for it: it is one of
  // the checkpoint.keep_best best.
  bool evaluated(RunState& state);

  // What plateau has left of the learning rate, in (0, 1].
  double lr_factor() const { return plateau_ ? plateau_->factor() : 1; }

 private:
  bool is_among_best(RunState& state, double value) const;
  double gain(double now, double before) const;  // > 0: now is better, by the metric that is followed

  std::optional<Plateau> plateau_;
  std::string plateau_metric_;
  std::optional<std::string> followed_;  // by early stopping or checkpoint.best
  std::optional<recipe::EarlyStopSpec> early_stop_;
  int64_t keep_best_ = 0;  // 0: there is no checkpoint.best
};

}  // namespace skytrain::train
