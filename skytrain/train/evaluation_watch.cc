#include "skytrain/train/evaluation_watch.h"

#include "skytrain/base/error.h"

namespace skytrain::train {

EvaluationWatch::EvaluationWatch(const recipe::Recipe& recipe, bool of_classes) {
  const auto check = [&](const std::string& metric, const char* where) {
    if (metric == "top1" && !of_classes)
      throw Error(ErrorKind::kRecipe, where, "is top1, and the targets of the data are values, not classes",
                  "set it to loss");
  };
  if (recipe.train.schedule.name == "plateau") {
    plateau_.emplace(recipe.train.schedule, recipe.train.optimizer.lr);
    plateau_metric_ = recipe.train.schedule.metric;
    check(plateau_metric_, "train.schedule.metric");
  }
  if (recipe.checkpoint.best) {
    followed_ = recipe.checkpoint.best;
    check(*followed_, "checkpoint.best");
  }
  early_stop_ = recipe.train.early_stop;
  if (early_stop_) {
    followed_ = early_stop_->metric;
    check(*followed_, "train.early_stop.metric");
  }
}

void EvaluationWatch::restored(const RunState& state) {
  if (plateau_ && !state.plateau.is_null()) plateau_->from_json(state.plateau);
}

bool EvaluationWatch::better(const Evaluation& now, const Evaluation& before) const {
  const double least = early_stop_ ? early_stop_->min_delta : 0;
  const double gain =
      (now.metric(*followed_).value() - before.metric(*followed_).value()) * (*followed_ == "loss" ? -1 : 1);
  return gain > least;
}

bool EvaluationWatch::evaluated(RunState& state) {
  if (plateau_) {
    plateau_->observe(state.evaluation.metric(plateau_metric_).value());
    state.plateau = plateau_->to_json();
  }
  if (!followed_) return false;
  const bool best = !state.best || better(state.evaluation, *state.best);
  if (best) {
    state.best = state.evaluation;
    state.evaluations_without_better = 0;
  } else {
    ++state.evaluations_without_better;
  }
  if (early_stop_ && state.evaluations_without_better >= early_stop_->patience) state.stopped_early = true;
  return best;
}

}  // namespace skytrain::train
