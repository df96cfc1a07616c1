#include "skytrain/data/slots.h"

#include <algorithm>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/mix.h"
#include "skytrain/data/order.h"

namespace skytrain::data {

Slots::Slots(uint64_t samples, uint64_t batch, uint64_t slot) : Slots(std::vector{samples}, batch, slot, 0) {}

Slots::Slots(std::vector<uint64_t> buckets, uint64_t batch, uint64_t slot, uint64_t seed)
    : buckets_(std::move(buckets)), batch_(batch), slot_(slot), seed_(seed) {
  const bool empty = buckets_.empty() || std::find(buckets_.begin(), buckets_.end(), 0) != buckets_.end();
  if (empty || batch == 0 || slot == 0 || slot > batch) {
    throw Error(ErrorKind::kInternal, "",
                str("impossible slots: ", buckets_.size(), " buckets, ", empty ? "one without samples, " : "", "batch ",
                    batch, ", slot ", slot));
  }
  uint64_t full = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    begins_.push_back(samples_);
    samples_ += buckets_[i];
    full += buckets_[i] / batch_;
    full_ends_.push_back(full);
    if (buckets_[i] % batch_ > 0) short_ones_.push_back(i);
  }
}

uint64_t Slots::steps_per_epoch() const { return full_ends_.back() + short_ones_.size(); }

// Rounding up is written as (n - 1) / d + 1, which cannot overflow.
uint64_t Slots::slots_per_step() const { return (batch_ - 1) / slot_ + 1; }

Slots::Place Slots::place(uint64_t step) const {
  const uint64_t epoch = step / steps_per_epoch(), in_epoch = step % steps_per_epoch(), full = full_ends_.back();
  if (in_epoch >= full) {
    // Each bucket has its turn to be the epoch's last.
    const uint64_t bucket = short_ones_[(in_epoch - full + epoch) % short_ones_.size()];
    return {bucket, buckets_[bucket] / batch_};
  }
  if (buckets_.size() == 1) return {0, in_epoch};
  const uint64_t number = Order(full, make_key(Stream::kBuckets, seed_, 0), epoch)[in_epoch];
  const size_t bucket =
      static_cast<size_t>(std::upper_bound(full_ends_.begin(), full_ends_.end(), number) - full_ends_.begin());
  return {bucket, number - (bucket == 0 ? 0 : full_ends_[bucket - 1])};
}

uint64_t Slots::step_samples(uint64_t step) const {
  const Place at = place(step);
  return std::min(batch_, buckets_[at.bucket] - at.number * batch_);
}

uint64_t Slots::samples_before(uint64_t steps) const {
  const uint64_t rest = steps % steps_per_epoch(), full = full_ends_.back();
  uint64_t samples = steps / steps_per_epoch() * samples_ + std::min(rest, full) * batch_;
  for (uint64_t short_one = full; short_one < rest; ++short_one) {
    samples += step_samples(steps - rest + short_one);
  }
  return samples;
}

uint64_t Slots::steps_for(uint64_t samples) const {
  const uint64_t epochs = samples / samples_, rest = samples % samples_;
  const uint64_t full = std::min(full_ends_.back(), rest / batch_ + (rest % batch_ > 0 ? 1 : 0));
  uint64_t steps = epochs * steps_per_epoch() + full;
  while (samples_before(steps) < samples) ++steps;
  return steps;
}

Slot Slots::slot(uint64_t step, uint64_t index) const {
  if (index >= slots_per_step()) {
    throw Error(ErrorKind::kInternal, "", str("slot ", index, " of ", slots_per_step(), " was asked for"));
  }
  const Place at = place(step);
  const uint64_t in_step = std::min(batch_, buckets_[at.bucket] - at.number * batch_);
  const uint64_t begin = std::min(index * slot_, in_step);
  return Slot{.epoch = step / steps_per_epoch(),
              .begin = begins_[at.bucket] + at.number * batch_ + begin,
              .count = std::min(slot_, in_step - begin),
              .index = index,
              .step = step,
              .bucket = at.bucket};
}

std::vector<Slot> Slots::deal(uint64_t step, uint64_t rank, uint64_t world) const {
  if (rank >= world) {
    throw Error(ErrorKind::kInternal, "", str("slots of rank ", rank, " in a world of ", world, " were asked for"));
  }
  const uint64_t each = slots_per_step() / world, one_more = slots_per_step() % world;
  const uint64_t first = rank * each + std::min(rank, one_more);
  const uint64_t count = each + (rank < one_more ? 1 : 0);
  std::vector<Slot> result;
  result.reserve(count);
  for (uint64_t index = first; index < first + count; ++index) result.push_back(slot(step, index));
  return result;
}

}  // namespace skytrain::data
