#include "skytrain/train/evaluation_watch.h"

#include <algorithm>

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
    keep_best_ = recipe.checkpoint.keep_best;
    check(*followed_, "checkpoint.best");
  }
  early_stop_ = recipe.train.early_stop;
  if (early_stop_) {
    followed_ = early_stop_->metric;
    check(*followed_, "train.early_stop.metric");
  }
}

void EvaluationWatch::restored(RunState& state) {
  if (keep_best_ > 0) {
    if (!state.best_metric.empty() && state.best_metric != *followed_) {  // the best by another one is not so by this
      state.best_steps.clear();
      state.best.reset();
    }
    if (state.best && state.best_steps.empty())  // of a run from before there was more than one
      state.best_steps = {{state.best->step, state.best->metric(*followed_).value()}};
    state.best_metric = *followed_;
  }
  if (plateau_ && !state.plateau.is_null()) plateau_->from_json(state.plateau);
}

double EvaluationWatch::gain(double now, double before) const {
  return *followed_ == "loss" ? before - now : now - before;
}

bool EvaluationWatch::evaluated(RunState& state) {
  if (plateau_) {
    plateau_->observe(state.evaluation.metric(plateau_metric_).value());
    state.plateau = plateau_->to_json();
  }
  if (!followed_) return false;
  const double value = state.evaluation.metric(*followed_).value();
  if (!state.best || gain(value, state.best->metric(*followed_).value()) > 0) state.best = state.evaluation;
  if (early_stop_) {
    if (!state.early_stop_value || gain(value, *state.early_stop_value) > early_stop_->min_delta) {
      state.early_stop_value = value;
      state.evaluations_without_better = 0;
    } else if (++state.evaluations_without_better >= early_stop_->patience) {
      state.stopped_early = true;
    }
  }
  return keep_best_ > 0 && is_among_best(state, value);
}

// Of equal ones the earlier stays.
bool EvaluationWatch::is_among_best(RunState& state, double value) const {
  auto& steps = state.best_steps;
  state.best_metric = *followed_;
  const auto place =
      std::find_if(steps.begin(), steps.end(), [&](const auto& other) { return gain(value, other.second) > 0; });
  const bool among = place != steps.end() || steps.size() < static_cast<size_t>(keep_best_);
  if (among) steps.insert(place, {state.evaluation.step, value});
  if (steps.size() > static_cast<size_t>(keep_best_)) steps.resize(static_cast<size_t>(keep_best_));
  return among;
}

}  // namespace skytrain::train
