#include "skytrain/train/run_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

using Unit = recipe::Duration::Unit;

}  // namespace

RunPlan::RunPlan(const recipe::Recipe& recipe, const std::vector<uint64_t>& buckets)
    : eval_(recipe.eval),
      checkpoint_(recipe.checkpoint),
      samples_per_epoch_(std::accumulate(buckets.begin(), buckets.end(), uint64_t{0})),
      slots_(buckets, uint64_t(recipe.train.batch), uint64_t(recipe.train.slot.value()), recipe.seed) {
  const recipe::Duration& length = recipe.train.length;
  const uint64_t batch = uint64_t(recipe.train.batch);
  total_steps_ = length.unit == Unit::kSteps
                     ? uint64_t(std::llround(length.value))
                     : slots_.steps_for(recipe::to_samples(length, batch, samples_per_epoch_, 0));
  if (total_steps_ == 0)
    throw Error(
        ErrorKind::kRecipe, "train.epochs",
        str(shortest_double(length.value), " epochs of ", samples_per_epoch_, " samples is less than one sample"));
}

bool RunPlan::due(const recipe::Duration& every, uint64_t step) const {
  if (step == 0 || every.unit == Unit::kSeconds || every.value <= 0) return false;
  double period = every.value, before = double(step - 1), after = double(step);
  if (every.unit != Unit::kSteps) {
    before = double(slots_.samples_before(step - 1));
    after = double(slots_.samples_before(step));
    if (every.unit == Unit::kEpochs) period *= double(samples_per_epoch_);
    if (every.unit == Unit::kPercent) period *= double(total_samples()) / 100;
  }
  return std::floor(after / period) > std::floor(before / period);
}

bool RunPlan::evaluation_due(uint64_t step) const { return step >= total_steps_ || due(eval_.every, step); }

bool RunPlan::checkpoint_due_by_progress(uint64_t step) const {
  return step >= total_steps_ || kept_for_good(step) ||
         std::any_of(checkpoint_.every.begin(), checkpoint_.every.end(),
                     [&](const recipe::Duration& every) { return due(every, step); });
}

bool RunPlan::checkpoint_due_by_time(double seconds_since_last) const {
  return std::any_of(checkpoint_.every.begin(), checkpoint_.every.end(), [&](const recipe::Duration& every) {
    return every.unit == Unit::kSeconds && every.value > 0 && seconds_since_last >= every.value;
  });
}

bool RunPlan::kept_for_good(uint64_t step) const {
  return checkpoint_.keep_every && due(*checkpoint_.keep_every, step);
}

uint64_t RunPlan::default_log_every() const { return std::clamp<uint64_t>(slots_.steps_per_epoch() / 100, 1, 50); }

}  // namespace skytrain::train
