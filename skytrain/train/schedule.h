// skytrain/train/schedule.h
//
// The learning rate as a pure function of samples consumed, so that a resumed or resized run continues on the same
// curve.

#pragma once
#include <cstdint>

#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

class Schedule {
 public:
  // total_samples: of the whole run, > 0.
  Schedule(const recipe::ScheduleSpec& spec, double base_lr, uint64_t batch, uint64_t samples_per_epoch,
           uint64_t total_samples);

  // The rate of the optimizer step that comes after `samples` consumed samples. With W samples of warm-up:
  //   samples + batch <= W:  base * (samples + batch) / W          (step t of w: base * t / w)
  //   constant:              base
  //   cosine:                min + (base - min) * (1 + cos(pi * (samples - W) / (total - W))) / 2
  // which is LinearLR-like warm-up followed by torch.optim.lr_scheduler.CosineAnnealingLR over the remaining steps.
  double rate(uint64_t samples) const;

  uint64_t warmup_samples() const { return warmup_; }

 private:
  double base_, min_;
  bool cosine_;
  uint64_t batch_, warmup_, total_;
};

}  // namespace skytrain::train
