// skytrain/train/run_plan.h
//
// The arithmetic of a run: how many steps, and after which of them something is due.

#pragma once
#include <cstdint>
#include <vector>

#include "skytrain/data/slots.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

class RunPlan {
 public:
  // buckets: samples of each (data/slots.h). REQUIRES: recipe.train.slot has a value.
  RunPlan(const recipe::Recipe& recipe, const std::vector<uint64_t>& buckets);

  const data::Slots& slots() const { return slots_; }
  uint64_t samples_per_epoch() const { return samples_per_epoch_; }
  uint64_t total_steps() const { return total_steps_; }
  uint64_t total_samples() const { return slots_.samples_before(total_steps_); }

  // True when step `step` (1-based: the number of committed steps) completes a multiple of `every` (not of seconds).
  bool due(const recipe::Duration& every, uint64_t step) const;
  bool evaluation_due(uint64_t step) const;              // at its cadence, and after the last step
  bool checkpoint_due_by_progress(uint64_t step) const;  // at its cadence in steps or samples, and after the last step
  bool checkpoint_due_by_time(double seconds_since_last) const;
  bool kept_for_good(uint64_t step) const;  // checkpoint.keep_every
  // Steps between metrics lines when the user named no number: a hundredth of an epoch, 1 to 50.
  uint64_t default_log_every() const;

 private:
  recipe::EvalSpec eval_;
  recipe::CheckpointSpec checkpoint_;
  uint64_t samples_per_epoch_;
  data::Slots slots_;
  uint64_t total_steps_ = 0;
};

}  // namespace skytrain::train
