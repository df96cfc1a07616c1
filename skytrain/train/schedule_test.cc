#include "skytrain/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::train {
namespace {

using recipe::Duration;

Schedule make(const std::string& name, Duration warmup, double min_lr = 0) {
  recipe::ScheduleSpec spec;
  spec.name = name;
  spec.warmup = warmup;
  spec.min_lr = min_lr;
  return Schedule(spec, /*base_lr=*/0.1, /*batch=*/8, /*samples_per_epoch=*/40, /*total_samples=*/80);
}

TEST(Schedule, WithoutWarmupTheFirstStepHasTheFullRate) {
  EXPECT_EQ(make("constant", {0, Duration::Unit::kSteps}).rate(0), 0.1);
  EXPECT_EQ(make("cosine", {0, Duration::Unit::kSteps}).rate(0), 0.1);
}

TEST(Schedule, WarmupRisesInEqualStepsToTheFullRate) {
  const Schedule schedule = make("constant", {4, Duration::Unit::kSteps});
  for (int step = 0; step < 4; ++step) EXPECT_DOUBLE_EQ(schedule.rate(step * 8), 0.1 * (step + 1) / 4);
  EXPECT_DOUBLE_EQ(schedule.rate(32), 0.1);
}

TEST(Schedule, CosineFallsFromTheFullRateToTheLowest) {
  const Schedule schedule = make("cosine", {2, Duration::Unit::kSteps}, /*min_lr=*/0.01);
  EXPECT_DOUBLE_EQ(schedule.rate(8), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(16), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(48), 0.01 + 0.09 * 0.5);  // half way
  EXPECT_DOUBLE_EQ(schedule.rate(80), 0.01);
}

// Users set a warm-up as long as their run, or longer, and got a division by zero or a rate of 0 for the first step.
TEST(Schedule, AnyWarmupGivesAFinitePositiveRateWithinBounds) {
  for (const char* name : {"constant", "cosine"})
    for (const Duration& warmup : {Duration{0, Duration::Unit::kSteps},
                                   {1, Duration::Unit::kSteps},
                                   {10, Duration::Unit::kSteps},
                                   {25, Duration::Unit::kSteps},
                                   {100, Duration::Unit::kPercent},
                                   {3, Duration::Unit::kSamples},
                                   {2, Duration::Unit::kEpochs}}) {
      const Schedule schedule = make(name, warmup);
      for (uint64_t samples = 0; samples < 80; samples += 8) {
        EXPECT_TRUE(std::isfinite(schedule.rate(samples)));
        EXPECT_GT(schedule.rate(samples), 0) << name << " " << to_string(warmup) << " at " << samples;
        EXPECT_LE(schedule.rate(samples), 0.1);
      }
    }
}

}  // namespace
}  // namespace skytrain::train
