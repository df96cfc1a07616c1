#include "skytrain/data/slots.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "skytrain/base/error.h"

namespace skytrain::data {
namespace {

TEST(Slots, CountsStepsAndSlots) {
  const Slots slots(/*samples=*/21, /*batch=*/8, /*slot=*/3);
  EXPECT_EQ(slots.steps_per_epoch(), 3u);
  EXPECT_EQ(slots.slots_per_step(), 3u);
  EXPECT_EQ(slots.step_samples(0), 8u);
  EXPECT_EQ(slots.step_samples(2), 5u);  // short: 21 = 8 + 8 + 5
  EXPECT_EQ(slots.step_samples(3), 8u);  // the next epoch's first
  EXPECT_EQ(slots.step_samples(5), 5u);
}

TEST(Slots, NextEpochStartsAtPositionZero) {
  const Slots slots(21, 8, 3);
  const Slot last = slots.slot(2, 1);
  EXPECT_EQ(last.epoch, 0u);
  EXPECT_EQ(last.begin, 19u);
  EXPECT_EQ(last.count, 2u);
  const Slot empty = slots.slot(2, 2);
  EXPECT_EQ(empty.count, 0u);
  EXPECT_EQ(empty.index, 2u);
  const Slot next = slots.slot(3, 0);
  EXPECT_EQ(next.epoch, 1u);
  EXPECT_EQ(next.begin, 0u);
  EXPECT_EQ(next.count, 3u);
}

// Resuming at the end of an epoch once ran that epoch's last batch again: the cursor was off by a short step.
TEST(Slots, SamplesBeforeIsTheSumOfTheSteps) {
  for (uint64_t samples : {1u, 7u, 8u, 9u, 21u, 64u}) {
    const Slots slots(samples, 8, 2);
    uint64_t sum = 0;
    for (uint64_t step = 0; step < 40; ++step) {
      EXPECT_EQ(slots.samples_before(step), sum) << samples << " samples, step " << step;
      sum += slots.step_samples(step);
    }
  }
}

// Padding that makes all ranks equal counts samples twice; dropping a remainder loses them.
TEST(Slots, EveryPositionIsDealtExactlyOnceInAnyWorld) {
  for (uint64_t samples : {1u, 20u, 21u, 64u, 67u}) {
    for (uint64_t batch : {1u, 5u, 8u, 100u}) {
      for (uint64_t slot = 1; slot <= batch; slot += 3) {
        const Slots slots(samples, batch, slot);
        for (uint64_t world = 1; world <= 8; ++world) {
          std::map<uint64_t, int> seen;
          for (uint64_t step = 0; step < slots.steps_per_epoch(); ++step) {
            uint64_t dealt = 0, in_step = 0;
            for (uint64_t rank = 0; rank < world; ++rank) {
              for (const Slot& s : slots.deal(step, rank, world)) {
                EXPECT_EQ(s.index, dealt++);  // contiguous blocks in the order of ranks
                EXPECT_EQ(s.epoch, 0u);
                in_step += s.count;
                for (uint64_t i = 0; i < s.count; ++i) ++seen[s.begin + i];
              }
            }
            EXPECT_EQ(dealt, slots.slots_per_step());
            EXPECT_EQ(in_step, slots.step_samples(step));
          }
          ASSERT_EQ(seen.size(), samples);
          EXPECT_EQ(seen.rbegin()->first, samples - 1);
          for (const auto& [position, times] : seen) EXPECT_EQ(times, 1) << "position " << position;
        }
      }
    }
  }
}

TEST(Slots, HoldTheSameSamplesInAnyWorld) {
  const Slots slots(1000, 64, 7);
  for (uint64_t world = 1; world <= 8; ++world) {
    for (uint64_t rank = 0; rank < world; ++rank) {
      for (const Slot& dealt : slots.deal(11, rank, world)) {
        const Slot alone = slots.slot(11, dealt.index);
        EXPECT_EQ(dealt.begin, alone.begin);
        EXPECT_EQ(dealt.count, alone.count);
      }
    }
  }
}

TEST(Slots, FirstRanksTakeOneMoreWhenUneven) {
  const Slots slots(80, 10, 1);
  std::vector<size_t> counts;
  for (uint64_t rank = 0; rank < 4; ++rank) counts.push_back(slots.deal(0, rank, 4).size());
  EXPECT_EQ(counts, (std::vector<size_t>{3, 3, 2, 2}));
}

TEST(Slots, MoreRanksThanSlotsLeavesTheLastRanksIdle) {
  const Slots slots(100, 4, 2);
  EXPECT_EQ(slots.deal(0, 0, 5).size(), 1u);
  EXPECT_EQ(slots.deal(0, 1, 5).size(), 1u);
  for (uint64_t rank = 2; rank < 5; ++rank) EXPECT_TRUE(slots.deal(0, rank, 5).empty());
}

TEST(Slots, BatchLargerThanTheDataSetIsOneShortStep) {
  const Slots slots(10, 64, 16);
  EXPECT_EQ(slots.steps_per_epoch(), 1u);
  EXPECT_EQ(slots.step_samples(0), 10u);
  EXPECT_EQ(slots.slot(0, 0).count, 10u);
  EXPECT_EQ(slots.slot(0, 3).count, 0u);
  EXPECT_EQ(slots.slot(7, 0).epoch, 7u);
}

TEST(Slots, HugeNumbersDoNotOverflow) {
  const uint64_t huge = ~uint64_t{0};
  const Slots slots(/*samples=*/5, /*batch=*/huge, /*slot=*/huge / 2 + 1);
  EXPECT_EQ(slots.steps_per_epoch(), 1u);
  EXPECT_EQ(slots.slots_per_step(), 2u);
  EXPECT_EQ(slots.slot(0, 0).count, 5u);
  EXPECT_EQ(slots.slot(0, 1).count, 0u);
  EXPECT_EQ(Slots(huge, 1, 1).steps_per_epoch(), huge);
}

TEST(Slots, RefusesNumbersThatMakeNoSense) {
  EXPECT_THROW(Slots(0, 1, 1), Error);
  EXPECT_THROW(Slots(1, 0, 1), Error);
  EXPECT_THROW(Slots(1, 1, 0), Error);
  EXPECT_THROW(Slots(1, 4, 5), Error);
  EXPECT_THROW(Slots(8, 4, 2).slot(0, 2), Error);
  EXPECT_THROW(Slots(8, 4, 2).deal(0, 3, 3), Error);
}

// Buckets of 21, 8, 3 and 40 samples in steps of 8.
TEST(Slots, OfBucketsHoldEachPositionOnceAnEpochAndOneBucketAStep) {
  const std::vector<uint64_t> buckets = {21, 8, 3, 40};
  const Slots slots(buckets, /*batch=*/8, /*slot=*/3, /*seed=*/5);
  ASSERT_EQ(slots.steps_per_epoch(), 2u + 1 + 0 + 5 + 2);  // two short ones
  std::vector<std::vector<uint64_t>> sequences;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::map<uint64_t, int> seen;
    std::vector<uint64_t>& sequence = sequences.emplace_back();
    for (uint64_t i = 0; i < slots.steps_per_epoch(); ++i) {
      const uint64_t step = epoch * slots.steps_per_epoch() + i;
      uint64_t samples = 0;
      for (uint64_t index = 0; index < slots.slots_per_step(); ++index) {
        const Slot slot = slots.slot(step, index);
        EXPECT_EQ(slot.epoch, epoch);
        EXPECT_EQ(slot.step, step);
        EXPECT_EQ(slot.bucket, slots.slot(step, 0).bucket);
        const uint64_t begin = slots.bucket_begin(slot.bucket);
        EXPECT_GE(slot.begin, begin);
        EXPECT_LE(slot.begin + slot.count, begin + buckets[slot.bucket]);
        for (uint64_t at = slot.begin; at < slot.begin + slot.count; ++at) ++seen[at];
        samples += slot.count;
      }
      EXPECT_EQ(samples, slots.step_samples(step));
      EXPECT_EQ(slots.samples_before(step) + samples, slots.samples_before(step + 1));
      sequence.push_back(slots.slot(step, 0).bucket);
    }
    EXPECT_EQ(seen.size(), 72u);
    for (const auto& [at, times] : seen) EXPECT_EQ(times, 1) << at;
  }
  EXPECT_NE(sequences[0], sequences[1]);
}

TEST(Slots, StepsForSamplesAreTheLeastThatConsumeThem) {
  for (const std::vector<uint64_t>& buckets : {std::vector<uint64_t>{21}, {21, 8, 3, 40}, {1, 1, 1}}) {
    const Slots slots(buckets, 8, 8, 1);
    for (uint64_t samples = 0; samples <= 200; ++samples) {
      const uint64_t steps = slots.steps_for(samples);
      EXPECT_GE(slots.samples_before(steps), samples);
      if (steps > 0) {
        EXPECT_LT(slots.samples_before(steps - 1), samples);
      }
    }
  }
}

}  // namespace
}  // namespace skytrain::data
