#include "skytrain/train/evaluation_watch.h"

#include <gtest/gtest.h>

namespace skytrain::train {
namespace {

recipe::Recipe recipe_of(double min_delta, int64_t patience) {
  recipe::Recipe recipe;
  recipe.checkpoint.best = "loss";
  recipe.train.early_stop = recipe::EarlyStopSpec{.metric = "loss", .patience = patience, .min_delta = min_delta};
  return recipe;
}

bool evaluated(EvaluationWatch& watch, RunState& state, double loss) {
  state = RunState::from_json(state.to_json(), state.step, "test");  // what a resume makes of it
  watch.restored(state);
  ++state.step;
  state.evaluated = true;
  state.evaluation = {.step = state.step, .loss = loss};
  return watch.evaluated(state);
}

// The best checkpoint was an old one, because each later evaluation was better by less than min_delta.
TEST(EvaluationWatch, ASmallGainIsTheBestThoughNotOneForEarlyStopping) {
  EvaluationWatch watch(recipe_of(/*min_delta=*/0.5, /*patience=*/3), /*of_classes=*/true);
  RunState state;
  EXPECT_TRUE(evaluated(watch, state, 2.0));
  EXPECT_TRUE(evaluated(watch, state, 1.8));
  EXPECT_EQ(state.best->step, 2u);
  EXPECT_EQ(state.evaluations_without_better, 1);
  EXPECT_FALSE(evaluated(watch, state, 1.9));
  EXPECT_EQ(state.best->step, 2u);
  EXPECT_EQ(state.evaluations_without_better, 2);
  EXPECT_TRUE(evaluated(watch, state, 1.4)) << "slowly, but by 0.6 since the first";
  EXPECT_EQ(state.evaluations_without_better, 0);
  for (const double loss : {1.3, 1.2, 1.1}) {
    EXPECT_FALSE(state.stopped_early);
    EXPECT_TRUE(evaluated(watch, state, loss));
  }
  EXPECT_TRUE(state.stopped_early);
  EXPECT_EQ(state.best->step, 7u);
}

TEST(EvaluationWatch, TheBestFewAreKeptTheEarlierOfEqualOnes) {
  recipe::Recipe recipe;
  recipe.checkpoint.best = "loss";
  recipe.checkpoint.keep_best = 2;
  EvaluationWatch watch(recipe, /*of_classes=*/true);
  RunState state;
  EXPECT_TRUE(evaluated(watch, state, 2.0));
  EXPECT_TRUE(evaluated(watch, state, 3.0)) << "there is room for it";
  EXPECT_FALSE(evaluated(watch, state, 3.0)) << "no better than one that is there";
  EXPECT_TRUE(evaluated(watch, state, 2.5));
  EXPECT_TRUE(evaluated(watch, state, 1.0));
  using Steps = std::vector<std::pair<uint64_t, double>>;
  EXPECT_EQ(state.best_steps, (Steps{{5, 1.0}, {1, 2.0}}));
  EXPECT_EQ(state.best->step, 5u);
}

// The losses of 0.4 and less stayed the best, as top-1 of 0.9 is more than they are.
TEST(EvaluationWatch, AnotherMetricBeginsAnew) {
  recipe::Recipe recipe;
  recipe.checkpoint.best = "loss";
  EvaluationWatch by_loss(recipe, /*of_classes=*/true);
  RunState state;
  EXPECT_TRUE(evaluated(by_loss, state, 0.4));
  recipe.checkpoint.best = "top1";
  EvaluationWatch by_top1(recipe, /*of_classes=*/true);
  by_top1.restored(state);
  ++state.step;
  state.evaluation = {.step = state.step, .loss = 0.5, .metrics = {{"top1", 0.1}}};
  EXPECT_TRUE(by_top1.evaluated(state));
  ASSERT_EQ(state.best_steps.size(), 1u);
  EXPECT_EQ(state.best_steps[0].first, 2u);
}

}  // namespace
}  // namespace skytrain::train
