// skytrain/data/slots.h
//
// How an epoch is cut into optimizer steps and a step into slots (micro-batches), and how slots are dealt to ranks.
// Pure functions of numbers: the world size never changes what a slot holds.

#pragma once
#include <cstdint>
#include <vector>

namespace skytrain::data {

// A run of positions [begin, begin + count) of one epoch's Order.
struct Slot {
  uint64_t epoch = 0;
  uint64_t begin = 0;
  uint64_t count = 0;  // 0: an empty slot of a short last step; weighs nothing
  uint64_t index = 0;  // within its step
};

class Slots {
 public:
  // samples: of the data set, > 0; batch: samples per optimizer step, > 0; slot: 1..batch.
  // The last step of an epoch is short when batch does not divide samples; steps never cross epochs.
  Slots(uint64_t samples, uint64_t batch, uint64_t slot);

  uint64_t steps_per_epoch() const;
  uint64_t slots_per_step() const;  // ceil(batch / slot), the same for each step
  // Samples of step `step` (0-based, over the whole run).
  uint64_t step_samples(uint64_t step) const;
  // Samples consumed by the first `steps` steps of the run.
  uint64_t samples_before(uint64_t steps) const;
  // Slot `index` of step `step`. Slots of a step are contiguous and in order; those beyond a short step are empty.
  Slot slot(uint64_t step, uint64_t index) const;
  // The slots of `step` that rank `rank` of `world` computes: contiguous blocks, the first ranks one more when
  // slots_per_step() is not divisible.
  std::vector<Slot> deal(uint64_t step, uint64_t rank, uint64_t world) const;

 private:
  uint64_t samples_, batch_, slot_;
};

}  // namespace skytrain::data
