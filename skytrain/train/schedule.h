// skytrain/train/schedule.h
//
// The learning rate as a pure function of samples consumed, so that a resumed or resized run continues on the same
// curve. Only `plateau` depends on what the run measures: its state is small and part of the checkpoint.

#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

class Schedule {
 public:
  // total_samples: of the whole run, > 0. Throws Error(kRecipe) for milestones that don't rise.
  Schedule(const recipe::ScheduleSpec& spec, double base_lr, uint64_t batch, uint64_t samples_per_epoch,
           uint64_t total_samples);

  // The rate of the optimizer step that comes after `samples` consumed samples. In a warm-up of W samples, while
  // samples + batch <= W, it is base * (samples + batch) / W (step t of w, from 1: base * t / w). After it, with
  // s = samples - W and S = total - W, it is what the scheduler of torch.optim.lr_scheduler gives at step s / batch:
  //   constant           base
  //   step               base * gamma^floor(s / every)                                          StepLR
  //   multistep          base * gamma^(milestones <= s)                                         MultiStepLR
  //   cosine             min + (base - min) * (1 + cos(pi * s / S)) / 2                         CosineAnnealingLR
  //   cosine_restarts    the same in periods p, p * factor, p * factor^2, … CosineAnnealingWarmRestarts linear base +
  //   (min - base) * s / S                                            LinearLR polynomial         min + (base - min) *
  //   (1 - s / S)^power                                 PolynomialLR one_cycle          from base / start up to base,
  //   down to base / (start * final)           OneCycleLR plateau            base; times Plateau::factor()
  //   ReduceLROnPlateau
  double rate(uint64_t samples) const;

  // one_cycle with cycle_momentum: momentum (or the first beta) of that step; otherwise the optimizer's own holds.
  std::optional<double> momentum(uint64_t samples) const;

  uint64_t warmup_samples() const { return warmup_; }

 private:
  double after_warmup(uint64_t done) const;
  double restarting_cosine(uint64_t done) const;
  double one_cycle(uint64_t samples, double start, double top, double end) const;

  recipe::ScheduleSpec spec_;
  double base_;
  uint64_t batch_, warmup_, total_;
  uint64_t every_ = 0, period_ = 0;   // in samples
  std::vector<uint64_t> milestones_;  // in samples
};

// What `plateau` remembers: torch.optim.lr_scheduler.ReduceLROnPlateau with threshold_mode "rel" and eps 1e-8.
class Plateau {
 public:
  Plateau(const recipe::ScheduleSpec& spec, double base_lr);

  // After each evaluation. metric: the one that the spec names; the loss must fall, top1 must rise.
  void observe(double metric);
  // Current rate / base rate, in (0, 1].
  double factor() const { return rate_ / base_; }

  Json to_json() const;
  // Throws Json::exception.
  void from_json(const Json& json);

 private:
  recipe::ScheduleSpec spec_;
  double base_, rate_;
  std::optional<double> best_;
  int64_t bad_ = 0, cooldown_ = 0;
};

}  // namespace skytrain::train
