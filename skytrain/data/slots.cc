#include "skytrain/data/slots.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::data {

Slots::Slots(uint64_t samples, uint64_t batch, uint64_t slot) : samples_(samples), batch_(batch), slot_(slot) {
  if (samples == 0 || batch == 0 || slot == 0 || slot > batch) {
    throw Error(ErrorKind::kInternal, "",
                str("impossible slots: ", samples, " samples, batch ", batch, ", slot ", slot));
  }
}

// Rounding up is written as (n - 1) / d + 1, which cannot overflow.
uint64_t Slots::steps_per_epoch() const { return (samples_ - 1) / batch_ + 1; }

uint64_t Slots::slots_per_step() const { return (batch_ - 1) / slot_ + 1; }

uint64_t Slots::step_samples(uint64_t step) const {
  return std::min(batch_, samples_ - step % steps_per_epoch() * batch_);
}

uint64_t Slots::samples_before(uint64_t steps) const {
  // A remainder of steps never contains the epoch's short last one.
  return steps / steps_per_epoch() * samples_ + steps % steps_per_epoch() * batch_;
}

Slot Slots::slot(uint64_t step, uint64_t index) const {
  if (index >= slots_per_step()) {
    throw Error(ErrorKind::kInternal, "", str("slot ", index, " of ", slots_per_step(), " was asked for"));
  }
  const uint64_t in_step = step_samples(step);
  const uint64_t begin = std::min(index * slot_, in_step);
  return Slot{.epoch = step / steps_per_epoch(),
              .begin = step % steps_per_epoch() * batch_ + begin,
              .count = std::min(slot_, in_step - begin),
              .index = index};
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
