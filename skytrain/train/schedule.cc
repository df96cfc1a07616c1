#include "skytrain/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

// From `from` (at 0) to `to` (at 1).
double cosine_between(double from, double to, double at) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * at));
}

}  // namespace

Schedule::Schedule(const recipe::ScheduleSpec& spec, double base_lr, uint64_t batch, uint64_t samples_per_epoch,
                   uint64_t total_samples)
    : spec_(spec), base_(base_lr), batch_(std::min(batch, samples_per_epoch)), total_(total_samples) {
  const auto samples = [&](const recipe::Duration& duration) {
    return recipe::to_samples(duration, batch, samples_per_epoch, total_samples);
  };
  warmup_ = spec.name == "one_cycle" ? 0 : samples(spec.warmup);
  every_ = std::max<uint64_t>(1, samples(spec.every));
  period_ = std::max<uint64_t>(1, samples(spec.period));
  for (size_t i = 0; i < spec.milestones.size(); ++i) {
    milestones_.push_back(samples(spec.milestones[i]));
    if (i > 0 && milestones_[i] <= milestones_[i - 1])
      throw Error(ErrorKind::kRecipe, str("train.schedule.milestones[", i, "]"),
                  str(to_string(spec.milestones[i]), " is not after ", to_string(spec.milestones[i - 1])),
                  "milestones rise");
  }
}

double Schedule::rate(uint64_t samples) const {
  if (spec_.name == "one_cycle") {
    const double start = base_ / spec_.start_factor;
    return one_cycle(samples, start, base_, start / spec_.final_factor);
  }
  if (samples + batch_ <= warmup_) return base_ * double(samples + batch_) / double(warmup_);
  return after_warmup(samples > warmup_ ? samples - warmup_ : 0);
}

std::optional<double> Schedule::momentum(uint64_t samples) const {
  if (spec_.name != "one_cycle" || !spec_.cycle_momentum) return std::nullopt;
  return one_cycle(samples, spec_.max_momentum, spec_.base_momentum, spec_.max_momentum);
}

double Schedule::after_warmup(uint64_t done) const {
  const double low = spec_.min_lr;
  const double part = total_ > warmup_ ? std::min(1.0, double(done) / double(total_ - warmup_)) : 1;
  if (spec_.name == "step") return base_ * std::pow(spec_.gamma, double(done / every_));
  if (spec_.name == "multistep") {
    const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), done) - milestones_.begin();
    return base_ * std::pow(spec_.gamma, double(passed));
  }
  if (spec_.name == "cosine") return cosine_between(base_, low, part);
  if (spec_.name == "cosine_restarts") return restarting_cosine(done);
  if (spec_.name == "linear") return base_ + (low - base_) * part;
  if (spec_.name == "polynomial") return low + (base_ - low) * std::pow(1 - part, spec_.power);
  return base_;
}

double Schedule::restarting_cosine(uint64_t done) const {
  uint64_t period = period_;
  if (spec_.period_factor == 1) {
    done %= period;
  } else {
    while (done >= period) {
      done -= period;
      period *= uint64_t(spec_.period_factor);
    }
  }
  return cosine_between(base_, spec_.min_lr, double(done) / double(period));
}

// Phases end at fractional steps, as in OneCycleLR: `rise` of the run less one step, and so on.
double Schedule::one_cycle(uint64_t samples, double start, double top, double end) const {
  const double steps = double(total_) / double(batch_), step = double(samples) / double(batch_);
  struct Phase {
    double end, from, to;
  };
  std::vector<Phase> phases = {{spec_.rise * steps - 1, start, top}};
  if (spec_.three_phase) phases.push_back({2 * spec_.rise * steps - 2, top, start});
  phases.push_back({steps - 1, spec_.three_phase ? start : top, end});
  double begin = 0;
  for (const Phase& phase : phases) {
    if (step <= phase.end || &phase == &phases.back()) {
      const double part = phase.end > begin ? std::clamp((step - begin) / (phase.end - begin), 0.0, 1.0) : 1;
      return spec_.shape == "linear" ? phase.from + (phase.to - phase.from) * part
                                     : cosine_between(phase.from, phase.to, part);
    }
    begin = phase.end;
  }
  return end;
}

Plateau::Plateau(const recipe::ScheduleSpec& spec, double base_lr) : spec_(spec), base_(base_lr), rate_(base_lr) {}

void Plateau::observe(double metric) {
  constexpr double kLeastChange = 1e-8;
  const bool rising = spec_.metric == "top1";
  const bool better =
      !best_ || (rising ? metric > *best_ * (1 + spec_.threshold) : metric < *best_ * (1 - spec_.threshold));
  if (better) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_ = 0;
  }
  if (bad_ <= spec_.patience) return;
  const double lower = std::max(rate_ * spec_.gamma, spec_.min_lr);
  if (rate_ - lower > kLeastChange) rate_ = lower;
  cooldown_ = spec_.cooldown;
  bad_ = 0;
}

Json Plateau::to_json() const {
  return {{"rate", rate_}, {"best", best_ ? Json(*best_) : Json()}, {"bad", bad_}, {"cooldown", cooldown_}};
}

void Plateau::from_json(const Json& json) {
  rate_ = json.at("rate");
  if (const Json& best = json.at("best"); best.is_null()) {
    best_.reset();
  } else {
    best_ = best.get<double>();
  }
  bad_ = json.at("bad");
  cooldown_ = json.at("cooldown");
}

}  // namespace skytrain::train
