#include "skytrain/train/run_plan.h"

#include <gtest/gtest.h>

namespace skytrain::train {
namespace {

using recipe::Duration;

recipe::Recipe recipe_of(int64_t batch, Duration length) {
  recipe::Recipe recipe;
  recipe.train.batch = batch;
  recipe.train.slot = batch;
  recipe.train.length = length;
  recipe.checkpoint.every.clear();
  return recipe;
}

TEST(RunPlan, StepsNeverCrossEpochs) {
  const RunPlan plan(recipe_of(8, {2, Duration::Unit::kEpochs}), {20});
  EXPECT_EQ(plan.total_steps(), 6u);
  EXPECT_EQ(plan.total_samples(), 40u);
}

TEST(RunPlan, FractionsOfAnEpochEndAtTheNextStep) {
  EXPECT_EQ(RunPlan(recipe_of(8, {0.5, Duration::Unit::kEpochs}), {20}).total_steps(), 2u);
  EXPECT_EQ(RunPlan(recipe_of(8, {1.5, Duration::Unit::kEpochs}), {20}).total_steps(), 5u);
  EXPECT_EQ(RunPlan(recipe_of(8, {7, Duration::Unit::kSteps}), {20}).total_steps(), 7u);
}

TEST(RunPlan, EveryStepIsEveryStepThoughTheLastOfAnEpochIsShort) {
  recipe::Recipe recipe = recipe_of(8, {2, Duration::Unit::kEpochs});
  recipe.checkpoint.every = {{1, Duration::Unit::kSteps}};
  const RunPlan plan(recipe, {20});
  for (uint64_t step = 1; step <= 6; ++step) EXPECT_TRUE(plan.checkpoint_due_by_progress(step)) << step;
}

TEST(RunPlan, EpochsSamplesAndPercentAreDueWhereTheyAreCompleted) {
  const RunPlan plan(recipe_of(8, {2, Duration::Unit::kEpochs}), {20});
  const auto due_steps = [&](Duration every) {
    std::vector<uint64_t> steps;
    for (uint64_t step = 1; step <= 6; ++step)
      if (plan.due(every, step)) steps.push_back(step);
    return steps;
  };
  using Steps = std::vector<uint64_t>;
  EXPECT_EQ(due_steps({1, Duration::Unit::kEpochs}), (Steps{3, 6}));
  EXPECT_EQ(due_steps({2, Duration::Unit::kSteps}), (Steps{2, 4, 6}));
  EXPECT_EQ(due_steps({20, Duration::Unit::kSamples}), (Steps{3, 6}));
  EXPECT_EQ(due_steps({10, Duration::Unit::kSamples}), (Steps{2, 3, 5, 6}));
  EXPECT_EQ(due_steps({50, Duration::Unit::kPercent}), (Steps{3, 6}));
  EXPECT_EQ(due_steps({0.5, Duration::Unit::kEpochs}), (Steps{2, 3, 5, 6}));
}

TEST(RunPlan, TimeAloneMakesACheckpointDue) {
  recipe::Recipe recipe = recipe_of(8, {2, Duration::Unit::kEpochs});
  recipe.checkpoint.every = {{600, Duration::Unit::kSeconds}};
  const RunPlan plan(recipe, {20});
  EXPECT_FALSE(plan.checkpoint_due_by_progress(1));
  EXPECT_FALSE(plan.checkpoint_due_by_time(599));
  EXPECT_TRUE(plan.checkpoint_due_by_time(600));
  EXPECT_TRUE(plan.checkpoint_due_by_progress(6)) << "the last step is always saved";
}

}  // namespace
}  // namespace skytrain::train
