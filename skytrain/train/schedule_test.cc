#include "skytrain/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "skytrain/base/error.h"

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

recipe::ScheduleSpec spec_of(const std::string& name) {
  recipe::ScheduleSpec spec;
  spec.name = name;
  return spec;
}

Schedule build(const recipe::ScheduleSpec& spec) { return Schedule(spec, 0.1, 8, 40, 80); }

TEST(Schedule, StepsFallWhereTheySay) {
  recipe::ScheduleSpec spec = spec_of("step");
  spec.every = {2, Duration::Unit::kSteps};
  spec.gamma = 0.5;
  EXPECT_DOUBLE_EQ(build(spec).rate(8), 0.1);
  EXPECT_DOUBLE_EQ(build(spec).rate(16), 0.05);
  EXPECT_DOUBLE_EQ(build(spec).rate(48), 0.0125);
  spec = spec_of("multistep");
  spec.milestones = {{50, Duration::Unit::kPercent}, {64, Duration::Unit::kSamples}};
  EXPECT_DOUBLE_EQ(build(spec).rate(32), 0.1);
  EXPECT_DOUBLE_EQ(build(spec).rate(40), 0.01);
  EXPECT_DOUBLE_EQ(build(spec).rate(64), 0.001);
}

// An epoch of 20 samples in batches of 8 has 3 steps. Steps were counted as 8 samples each, so that every 3 steps came
// after 4, and with a batch larger than the data a warm-up of n steps took n batches of samples that never came.
TEST(Schedule, StepsAreStepsThoughTheLastOfAnEpochIsShort) {
  recipe::ScheduleSpec spec = spec_of("step");
  spec.every = {3, Duration::Unit::kSteps};
  spec.gamma = 0.5;
  const Schedule step(spec, 0.1, /*batch=*/8, /*samples_per_epoch=*/20, /*total_samples=*/60);
  const auto samples_before = [](uint64_t steps) { return steps / 3 * 20 + steps % 3 * 8; };
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(step.rate(samples_before(uint64_t(i))), 0.1 * std::pow(0.5, i / 3)) << i;

  spec = spec_of("multistep");
  spec.milestones = {{4, Duration::Unit::kSteps}};
  const Schedule multistep(spec, 0.1, 8, 20, 60);
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(multistep.rate(samples_before(uint64_t(i))), i < 4 ? 0.1 : 0.01) << i;

  spec = spec_of("constant");
  spec.warmup = {4, Duration::Unit::kSteps};
  const Schedule warmup(spec, 0.1, /*batch=*/1000, /*samples_per_epoch=*/20, /*total_samples=*/200);
  for (int i = 0; i < 10; ++i) EXPECT_DOUBLE_EQ(warmup.rate(uint64_t(i) * 20), 0.1 * std::min(1.0, (i + 1) / 4.0)) << i;
}

TEST(Schedule, MilestonesThatDoNotRiseAreRefused) {
  recipe::ScheduleSpec spec = spec_of("multistep");
  spec.milestones = {{1, Duration::Unit::kEpochs}, {5, Duration::Unit::kSteps}};  // the same place
  try {
    build(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "train.schedule.milestones[1]: 5 steps is not after 1 epoch\n  milestones rise");
  }
}

TEST(Schedule, RestartsGrowByTheirFactor) {
  recipe::ScheduleSpec spec = spec_of("cosine_restarts");
  spec.period = {2, Duration::Unit::kSteps};
  spec.period_factor = 2;
  const Schedule schedule = build(spec);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(8), 0.05);
  EXPECT_DOUBLE_EQ(schedule.rate(16), 0.1);  // a period of 4 steps begins
  EXPECT_DOUBLE_EQ(schedule.rate(32), 0.05);
  EXPECT_DOUBLE_EQ(schedule.rate(48), 0.1);
}

TEST(Schedule, OneCycleRisesFallsAndMovesTheMomentumTheOtherWay) {
  recipe::ScheduleSpec spec = spec_of("one_cycle");
  spec.rise = 0.5;
  const Schedule schedule = build(spec);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.1 / 25);
  EXPECT_DOUBLE_EQ(schedule.rate(32), 0.1);  // step 4 of 10: half of the run less one step
  EXPECT_NEAR(schedule.rate(72), 0.1 / 25 / 1e4, 1e-12);
  EXPECT_DOUBLE_EQ(*schedule.momentum(0), 0.95);
  EXPECT_DOUBLE_EQ(*schedule.momentum(32), 0.85);
  EXPECT_FALSE(make("cosine", {}).momentum(0));
}

// Runs of one or two steps have no room for the phases.
TEST(Schedule, OneCycleOfAnyLengthIsFiniteAndWithinBounds) {
  for (const bool three_phase : {false, true})
    for (uint64_t total = 1; total < 100; total += 7) {
      recipe::ScheduleSpec spec = spec_of("one_cycle");
      spec.three_phase = three_phase;
      const Schedule schedule(spec, 0.1, 8, 40, total);
      for (uint64_t samples = 0; samples <= total; ++samples) {
        ASSERT_GT(schedule.rate(samples), 0) << total << " " << samples;
        ASSERT_LE(schedule.rate(samples), 0.1 * (1 + 1e-12)) << total << " " << samples;
      }
    }
}

TEST(Plateau, DropsAfterPatienceAndWaitsOutItsCooldown) {
  recipe::ScheduleSpec spec = spec_of("plateau");
  spec.patience = 1;
  spec.cooldown = 1;
  spec.gamma = 0.5;
  Plateau plateau(spec, 0.1);
  std::vector<double> factors;
  for (const double loss : {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5}) {
    plateau.observe(loss);
    factors.push_back(plateau.factor());
  }
  EXPECT_EQ(factors, (std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25}));
}

TEST(Plateau, GoesOnFromItsSavedStateAsIfNothingHadHappened) {
  recipe::ScheduleSpec spec = spec_of("plateau");
  spec.metric = "top1";
  spec.patience = 2;
  Plateau whole(spec, 0.1);
  for (int i = 0; i < 20; ++i) {
    Plateau half(spec, 0.1);
    half.from_json(whole.to_json());
    const double top1 = 0.5 + 0.1 * (i % 3 == 0) - 0.01 * i;
    whole.observe(top1);
    half.observe(top1);
    ASSERT_EQ(whole.to_json(), half.to_json());
  }
  EXPECT_LT(whole.factor(), 1);
}

}  // namespace
}  // namespace skytrain::train
