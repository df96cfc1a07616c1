// The keys of optimizers, schedules and losses: which name takes which, and what is refused.

#include <gmock/gmock.h>

#include "skytrain/recipe/test_recipes.h"

namespace skytrain::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Unit = Duration::Unit;

ScheduleSpec schedule(const std::string& text) { return small_with({"train.schedule=" + text}).recipe.train.schedule; }

TEST(ScheduleKeys, EachScheduleTakesItsOwn) {
  EXPECT_EQ(schedule("{name: step, every: 30 epochs, gamma: 0.5}").gamma, 0.5);
  EXPECT_THAT(schedule("{name: multistep, milestones: [50%, 75%]}").milestones,
              ElementsAre(Duration{50, Unit::kPercent}, Duration{75, Unit::kPercent}));
  EXPECT_EQ(schedule("{name: cosine_restarts, period: 2 epochs, period_factor: 2, min_lr: 1e-4}").period_factor, 2);
  EXPECT_EQ(schedule("{name: linear, warmup: 10%, min_lr: 0}").warmup, (Duration{10, Unit::kPercent}));
  EXPECT_EQ(schedule("{name: polynomial, power: 2}").power, 2);
  EXPECT_EQ(schedule("{name: one_cycle, rise: 0.2, shape: linear, three_phase: true, start_factor: 10}").rise, 0.2);
  EXPECT_EQ(schedule("{name: plateau, metric: top1, patience: 2, cooldown: 1}").patience, 2);
}

TEST(ScheduleKeys, KeysOfAnotherScheduleAreRefused) {
  EXPECT_THAT(set_refusal("train.schedule={name: cosine, gamma: 0.5}"), HasSubstr("\"cosine\" does not take this key"));
  EXPECT_THAT(set_refusal("train.schedule={name: one_cycle, warmup: 5%}"), HasSubstr("does not take this key"));
  EXPECT_THAT(set_refusal("train.schedule={name: multistep}"), HasSubstr("milestones"));
  EXPECT_THAT(set_refusal("train.schedule={name: cosin}"), HasSubstr("did you mean \"cosine\"?"));
}

TEST(ScheduleKeys, PlateauNeedsAnEvaluation) {
  EXPECT_THAT(refusal(kSmall, {"train.schedule={name: plateau}", "data.eval=null"}),
              HasSubstr("plateau follows the evaluation, and there is no data.eval"));
}

// SGD without momentum was given one of up to 0.95 by the schedule's default, or none, without a word.
TEST(ScheduleKeys, OneCycleHasNoMomentumToCycleWithoutOne) {
  const auto sets = [](const std::string& optimizer, const std::string& schedule) {
    return std::vector<std::string>{"train.optimizer=" + optimizer, "train.schedule=" + schedule};
  };
  EXPECT_THAT(refusal(kSmall, sets("{name: sgd, lr: 0.1}", "{name: one_cycle}")),
              HasSubstr("one_cycle cycles the momentum, and sgd has none here"));
  EXPECT_FALSE(resolve(kSmall, sets("{name: sgd, lr: 0.1}", "{name: one_cycle, cycle_momentum: false}"))
                   .recipe.train.schedule.cycle_momentum);
  resolve(kSmall, sets("{name: sgd, lr: 0.1, momentum: 0.5}", "{name: one_cycle}"));
  resolve(kSmall, sets("{name: adam, lr: 0.1}", "{name: one_cycle}"));
}

TEST(OptimizerKeys, AdamsTakeBetasAndSgdMomentum) {
  const auto optimizer = [](const std::string& text) {
    return small_with({"train.optimizer=" + text}).recipe.train.optimizer;
  };
  EXPECT_EQ(optimizer("{name: adamw, lr: 1e-3, betas: [0.8, 0.9], weight_decay: 0.01}").beta1, 0.8);
  EXPECT_EQ(optimizer("{name: lamb, lr: 1e-3, eps: 1e-6}").eps, 1e-6);
  EXPECT_THAT(set_refusal("train.optimizer={name: lamb, lr: 1, momentum: 0.9}"), HasSubstr("does not take this key"));
}

TEST(OptimizerKeys, GroupsAreReadWrittenAndRefused) {
  const Recipe recipe =
      small_with({"train.optimizer.groups=[{\"conv*\": {lr_scale: 0}}, {fc1.bias: {weight_decay: 0}}]"}).recipe;
  ASSERT_EQ(recipe.train.optimizer.groups.size(), 2u);
  EXPECT_EQ(recipe.train.optimizer.groups[0].match, "conv*");
  EXPECT_EQ(recipe.train.optimizer.groups[0].lr_scale, 0);
  EXPECT_EQ(from_json(to_json(recipe)), recipe);
  EXPECT_THAT(set_refusal("train.optimizer.groups=[{\"*\": {lr: 0.1}}]"), HasSubstr("unknown key \"lr\""));
  EXPECT_THAT(set_refusal("train.optimizer.groups=[5]"), HasSubstr("expected one group like"));
  EXPECT_THAT(set_refusal("train.optimizer.groups=[{\"*\": {lr_scale: -1}}]"), HasSubstr("expected >= 0"));
}

// What --explain prints is a recipe again.
TEST(OptimizerKeys, GroupsSurviveExplain) {
  const Resolved resolved = small_with({"train.optimizer.groups=[{\"layer[12].*\": {lr_scale: 0.5}}]"});
  EXPECT_EQ(resolve(explain(resolved)).recipe.train.optimizer, resolved.recipe.train.optimizer);
}

TEST(LossKeys, LabelSmoothingIsForCrossEntropy) {
  EXPECT_EQ(small_with({"train.label_smoothing=0.1"}).recipe.train.label_smoothing, 0.1);
  EXPECT_THAT(refusal(kSmall, {"train.loss=mse", "train.label_smoothing=0.1"}),
              HasSubstr("is for the loss cross_entropy, not for mse"));
}

TEST(ModelKeys, FilesAreForModelsThatNeedOne) {
  EXPECT_EQ(small_with({"model={name: resnet18, stem: cifar}"}).recipe.model.stem, "cifar");
  EXPECT_THAT(set_refusal("model={name: torchscript}"), HasSubstr("is missing"));
  EXPECT_THAT(set_refusal("model={name: mlp, stem: cifar}"), HasSubstr("does not take this key"));
}

TEST(DataKeys, LinesOfJsonNamePicturesOrHoldNumbers) {
  const std::string rows = "data.train={format: jsonl, path: x.jsonl, target: y}";
  const std::string pictures =
      "data.train={format: jsonl, path: x.jsonl, image: file, target: y, size: 32, resize: 40}";
  EXPECT_EQ(small_with({rows}).recipe.data.train.image, std::nullopt);
  EXPECT_EQ(small_with({pictures}).recipe.data.train.image, "file");
  EXPECT_EQ(small_with({pictures}).recipe.data.train.resize, 40);
  for (const std::string& text : {rows, pictures}) {
    const Resolved resolved = small_with({text});
    EXPECT_EQ(resolve(explain(resolved)).recipe, resolved.recipe) << text;
    EXPECT_EQ(from_json(to_json(resolved.recipe)), resolved.recipe) << text;
  }
  EXPECT_THAT(set_refusal("data.train={format: jsonl, path: x, image: file, target: y}"),
              HasSubstr("data.train.size: is missing"));
  EXPECT_THAT(set_refusal("data.train={format: jsonl, path: x, target: y, size: 32}"),
              HasSubstr("data.train.size: is for pictures, and without image the lines hold numbers"));
  EXPECT_THAT(set_refusal("data.train={format: jsonl, path: x, image: file, size: 32}"),
              HasSubstr("data.train.target: is missing"));
  EXPECT_THAT(set_refusal("data.train={format: imagefolder, path: x}"), HasSubstr("data.train.size: is missing"));
  EXPECT_THAT(set_refusal("data.train={format: csv, path: x, target: y, image: file}"),
              HasSubstr("\"csv\" does not take this key (jsonl does)"));
}

TEST(DataKeys, FoldersAndTables) {
  const auto train = [](const std::string& text) { return small_with({"data.train=" + text}).recipe.data.train; };
  EXPECT_EQ(train("{format: imagefolder, path: x, size: 224, resize: 256}").resize, 256);
  EXPECT_THAT(train("{format: csv, path: x.csv, target: label}").target, ElementsAre("label"));
  EXPECT_THAT(train("{format: csv, path: x.csv, target: [a, b]}").target, ElementsAre("a", "b"));
  EXPECT_THAT(set_refusal("data.train={format: csv, path: x.csv}"), HasSubstr("target"));
}

}  // namespace
}  // namespace skytrain::recipe
