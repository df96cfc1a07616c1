#include "skytrain/train/run_plan.h"

#include <algorithm>
#include <cmath>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

using Unit = recipe::Duration::Unit;

// The number of steps after which at least `samples` samples of the run are consumed.
uint64_t steps_for(uint64_t samples, const data::Slots& slots, uint64_t per_epoch, uint64_t batch) {
  const uint64_t rest = samples % per_epoch;
  return samples / per_epoch * slots.steps_per_epoch() + (rest + batch - 1) / batch;
}

}  // namespace

RunPlan::RunPlan(const recipe::Recipe& recipe, uint64_t train_samples)
    : eval_(recipe.eval),
      checkpoint_(recipe.checkpoint),
      samples_per_epoch_(train_samples),
      slots_(train_samples, uint64_t(recipe.train.batch), uint64_t(recipe.train.slot.value())) {
  const recipe::Duration& length = recipe.train.length;
  const uint64_t batch = uint64_t(recipe.train.batch);
  total_steps_ = length.unit == Unit::kSteps
                     ? uint64_t(std::llround(length.value))
                     : steps_for(recipe::to_samples(length, batch, train_samples, 0), slots_, train_samples, batch);
  if (total_steps_ == 0)
    throw Error(ErrorKind::kRecipe, "train.epochs",
                str(shortest_double(length.value), " epochs of ", train_samples, " samples is less than one sample"));
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

bool RunPlan::checkpoint_due(uint64_t step, double seconds_since_last) const {
  if (step >= total_steps_) return true;
  return std::any_of(checkpoint_.every.begin(), checkpoint_.every.end(), [&](const recipe::Duration& every) {
    return every.unit == Unit::kSeconds ? every.value > 0 && seconds_since_last >= every.value : due(every, step);
  });
}

uint64_t RunPlan::default_log_every() const { return std::clamp<uint64_t>(slots_.steps_per_epoch() / 100, 1, 50); }

}  // namespace skytrain::train
