// skytrain/data/slots.h
//
// How an epoch is cut into optimizer steps and a step into slots (micro-batches), and how slots are dealt to ranks.
// Pure functions of numbers: the world size never changes what a slot holds.

#pragma once
#include <cstdint>
#include <vector>

namespace skytrain::data {

// A run of positions [begin, begin + count) of one epoch. Samples may be divided into buckets (buckets.h), whose
// positions follow each other; a slot has samples of one bucket only.
struct Slot {
  uint64_t epoch = 0;
  uint64_t begin = 0;
  uint64_t count = 0;  // 0: an empty slot of a short last step; weighs nothing
  uint64_t index = 0;  // within its step
  uint64_t step = 0;   // of the run
  uint64_t bucket = 0;
};

class Slots {
 public:
  // samples: of the data set, > 0; batch: samples per optimizer step, > 0; slot: 1..batch.
  // The last step of an epoch is short when batch does not divide samples; steps never cross epochs.
  Slots(uint64_t samples, uint64_t batch, uint64_t slot);
  // buckets: samples of each, > 0. All samples of a step are of one bucket. An epoch has the full steps of all buckets
  // first, in an order of its own that `seed` draws, and then a short step of each bucket that batch does not divide.
  Slots(std::vector<uint64_t> buckets, uint64_t batch, uint64_t slot, uint64_t seed);

  uint64_t steps_per_epoch() const;
  uint64_t slots_per_step() const;  // ceil(batch / slot), the same for each step
  // Samples of step `step` (0-based, over the whole run).
  uint64_t step_samples(uint64_t step) const;
  // Samples consumed by the first `steps` steps of the run.
  uint64_t samples_before(uint64_t steps) const;
  // The least number of steps that consume `samples` samples or more.
  uint64_t steps_for(uint64_t samples) const;
  // The first position of a bucket.
  uint64_t bucket_begin(uint64_t bucket) const { return begins_[bucket]; }
  // Slot `index` of step `step`. Slots of a step are contiguous and in order; those beyond a short step are empty.
  Slot slot(uint64_t step, uint64_t index) const;
  // The slots of `step` that rank `rank` of `world` computes: contiguous blocks, the first ranks one more when
  // slots_per_step() is not divisible.
  std::vector<Slot> deal(uint64_t step, uint64_t rank, uint64_t world) const;

 private:
  // Where a step lies in its epoch.
  struct Place {
    uint64_t bucket = 0;
    uint64_t number = 0;  // of the step, among those of the bucket
  };
  Place place(uint64_t step) const;

  std::vector<uint64_t> buckets_;     // samples
  std::vector<uint64_t> begins_;      // positions
  std::vector<uint64_t> full_ends_;   // full steps of the buckets up to each one
  std::vector<uint64_t> short_ones_;  // buckets that end with a short step
  uint64_t samples_ = 0, batch_, slot_, seed_;
};

}  // namespace skytrain::data
