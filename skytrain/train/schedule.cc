#include "skytrain/train/schedule.h"

#include <cmath>
#include <numbers>

namespace skytrain::train {

Schedule::Schedule(const recipe::ScheduleSpec& spec, double base_lr, uint64_t batch, uint64_t samples_per_epoch,
                   uint64_t total_samples)
    : base_(base_lr),
      min_(spec.min_lr),
      cosine_(spec.name == "cosine"),
      batch_(batch),
      warmup_(recipe::to_samples(spec.warmup, batch, samples_per_epoch, total_samples)),
      total_(total_samples) {}

double Schedule::rate(uint64_t samples) const {
  if (samples + batch_ <= warmup_) return base_ * double(samples + batch_) / double(warmup_);
  if (!cosine_) return base_;
  if (samples >= total_) return min_;
  const uint64_t done = samples > warmup_ ? samples - warmup_ : 0;
  const uint64_t span = total_ > warmup_ ? total_ - warmup_ : 1;
  return min_ + (base_ - min_) * 0.5 * (1 + std::cos(std::numbers::pi * double(done) / double(span)));
}

}  // namespace skytrain::train
