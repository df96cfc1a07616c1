#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "skytrain/recipe/test_recipes.h"

namespace skytrain::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Recipes that together use every kind of value.
std::vector<Resolved> varied() {
  std::vector<Resolved> out;
  out.push_back(small_with({}));
  out.push_back(
      small_with({"train.steps=100000", "train.slot=4", "devices=2", "train.clip_norm=0.5", "seed=9007199254740993"}));
  out.push_back(small_with({"data.eval=null", "model={name: mlp, hidden: [1, 2, 3]}", "name='8'"}));
  out.push_back(small_with({"model={name: convnet, width: 64}", "data.train={format: synthetic, samples: 12345678}",
                            "train.optimizer={name: adam, lr: 1e-05, betas: [0.1, 0.123456789012345678]}"}));
  out.push_back(small_with(
      {"data.transforms=[{normalize: {mean: [0.1307, 0, -1e-7], std: [0.3081, 1, 1e5]}}, {pad_crop: {pad: 4}}]",
       "checkpoint.every=[]", "train.schedule={name: cosine, warmup: 12.5%, min_lr: 1e-9}"}));
  out.push_back(
      small_with({"train.epochs=0.1", "checkpoint.every=[1e6 steps, 7 d]", "data.train.path=\"/a b/größe: #1/'x'\""}));
  out.push_back(small_with({"name=false", "train.epochs=90", "eval.every=0.3 epochs"}));
  return out;
}

TEST(Explain, ShowsEveryValueWithItsOrigin) {
  Resolved resolved = small_with({"train.batch=16"});
  resolved.recipe.train.slot = 8;
  record_auto(resolved, "train.slot", "batch 16 over 2 devices");
  EXPECT_EQ(explain(resolved),
            R"(version: 1                         # recipe.yaml:1:10
name: case                         # recipe.yaml:2:7
seed: 7                            # recipe.yaml:3:7
model:
  name: simplecnn                  # recipe.yaml:4:15
  classes: 10                      # recipe.yaml:4:35
  init: null                       # default
  init_except: []                  # default
data:
  train:
    format: idx                    # recipe.yaml:6:32
    path: /recipes/mnist           # recipe.yaml:6:17
    split: train                   # recipe.yaml:6:44
  eval:
    format: idx                    # recipe.yaml:7:32
    path: /recipes/mnist           # recipe.yaml:7:17
    split: test                    # recipe.yaml:7:44
  transforms: []                   # default
  buckets: []                      # default
  progressive_resizing: null       # default
  skip_bad_samples: 0              # default
  workers: auto                    # default
train:
  epochs: 1                        # recipe.yaml:9:11
  batch: 16                        # --set train.batch=16
  slot: 8                          # auto: batch 16 over 2 devices
  loss: cross_entropy              # default
  label_smoothing: 0               # default
  mixup: null                      # default
  cutmix: null                     # default
  optimizer:
    name: sgd                      # recipe.yaml:11:21
    lr: 0.05                       # recipe.yaml:11:30
    momentum: 0.9                  # recipe.yaml:11:46
    nesterov: false                # default
    weight_decay: 0                # default
    no_decay: false                # default
    groups: []                     # default
  schedule:
    name: constant                 # default
    warmup: 0 steps                # default
  precision: auto                  # default
  clip_norm: null                  # default
  clip_value: null                 # default
  ema: null                        # default
  memory_format: auto              # default
  activation_checkpointing: false  # default
  early_stop: null                 # default
  loss_spike: null                 # default
  deterministic: false             # default
eval:
  batch: 1000                      # default
  every: 1 epoch                   # default
checkpoint:
  every: [1 epoch, 600 s]          # default
  mtbf: 14400 s                    # default
  keep: 3                          # default
  keep_every: null                 # default
  best: null                       # default
  keep_best: 1                     # default
elastic:
  grace: 30 s                      # default
  max_restarts: 3                  # default
devices: auto                      # default
memory_budget: auto                # default
)");
}

TEST(Explain, IsARecipeThatResolvesToTheSame) {
  for (const Resolved& resolved : varied()) {
    const std::string yaml = explain(resolved);
    EXPECT_EQ(resolve_text(yaml, "explained.yaml", "/elsewhere", {}).recipe, resolved.recipe) << yaml;
  }
}

TEST(Explain, EveryLeafHasAnOriginAndEveryOriginALeaf) {
  for (const Resolved& resolved : varied()) {
    std::istringstream lines(explain(resolved));
    std::string line;
    size_t with_origin = 0;
    while (std::getline(lines, line)) {
      if (line.ends_with(":")) continue;
      EXPECT_THAT(line, HasSubstr("  # ")) << line;
      ++with_origin;
    }
    EXPECT_EQ(with_origin, resolved.origins.size());
  }
}

TEST(Explain, CommentsCannotBreakOutOfTheirLine) {
  Resolved resolved = small_with({});
  record_auto(resolved, "train.slot", "because\nname: evil");
  EXPECT_THAT(explain(resolved), HasSubstr("# auto: because\\x0Aname: evil\n"));
}

TEST(Explain, ForMachinesGivesRecipeAndOrigins) {
  const OrderedJson json = explain_json(small_with({"train.batch=16"}));
  EXPECT_EQ(json["recipe"]["train"]["batch"], 16);
  EXPECT_EQ(json["origins"]["train.batch"]["kind"], "set");
  EXPECT_EQ(json["origins"]["train.batch"]["place"], "--set train.batch=16");
  EXPECT_EQ(json["origins"]["name"]["kind"], "file");
  EXPECT_EQ(json["origins"]["devices"]["kind"], "default");
}

TEST(RecipeJson, RoundTrips) {
  for (const Resolved& resolved : varied()) {
    const std::string text = to_json(resolved.recipe).dump();
    EXPECT_EQ(from_json(parse_json(text, "recipe.json")), resolved.recipe) << text;
  }
}

TEST(RecipeJson, HasTheKeysInTheOrderOfTheReference) {
  std::vector<std::string> keys;
  const OrderedJson json = to_json(small_with({}).recipe);
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("version", "name", "seed", "model", "data", "train", "eval", "checkpoint", "elastic",
                                "devices", "memory_budget"));
  EXPECT_EQ(json["devices"], "auto");
  EXPECT_EQ(json["train"]["clip_norm"], nullptr);
  EXPECT_EQ(json["train"]["epochs"], 1);
  EXPECT_EQ(json["train"]["schedule"]["warmup"], "0 steps");
}

TEST(RecipeJson, IsAsStrictAsTheFile) {
  const auto refused = [](const std::function<void(Json&)>& change) -> std::string {
    Json json = to_json(small_with({}).recipe);
    change(json);
    try {
      from_json(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      return error.message();
    }
    ADD_FAILURE() << "accepted: " << json;
    return {};
  };
  EXPECT_THAT(refused([](Json& j) { j["train"]["bath"] = 8; }), HasSubstr("resolved recipe: train.bath: unknown key"));
  EXPECT_THAT(refused([](Json& j) { j["train"]["batch"] = 8.5; }), HasSubstr("resolved recipe: train.batch: \"8.5\""));
  EXPECT_THAT(refused([](Json& j) { j["train"]["batch"] = "8"; }), HasSubstr("is the text \"8\""));
  EXPECT_THAT(refused([](Json& j) { j["train"].erase("batch"); }), HasSubstr("train.batch: is missing"));
  EXPECT_THAT(refused([](Json& j) { j = Json::array(); }), HasSubstr("is a list"));
  EXPECT_THAT(refused([](Json& j) { j = nullptr; }), HasSubstr("has no value"));
}

// A resumed run continues a run only when what decides its weights is the same.
TEST(Continuation, WhatMayChangeBetweenAttemptsDoesNotCount) {
  const Recipe before = small_with({}).recipe;
  const Recipe after = small_with({"name=other", "checkpoint={every: 5 steps, keep: 9}", "eval={batch: 7}",
                                   "elastic={grace: 5 s, max_restarts: 0}", "devices=2", "data.train.path=/moved/mnist",
                                   "train.slot=4", "train.precision=fp32"})
                           .recipe;
  EXPECT_EQ(fingerprint(before), fingerprint(after));
  EXPECT_THAT(differences(before, after), IsEmpty());
}

TEST(Continuation, WhatDecidesTheWeightsCounts) {
  const Recipe before = small_with({}).recipe;
  for (const char* change : {"seed=8", "train.optimizer.lr=0.1", "train.epochs=2", "train.steps=5", "model.classes=11",
                             "train.schedule.warmup=1 steps", "train.clip_norm=1",
                             "data.transforms=[pad_crop: {pad: 2}]", "data.train.split=test", "data.eval=null",
                             "train.optimizer={name: adam, lr: 0.05}", "train.deterministic=true"}) {
    const Recipe after = small_with({change}).recipe;
    EXPECT_NE(fingerprint(before), fingerprint(after)) << change;
    EXPECT_THAT(differences(before, after), Not(IsEmpty())) << change;
  }
  EXPECT_THAT(differences(before, small_with({"train.batch=16", "seed=8"}).recipe),
              ElementsAre("seed: 8, was 7", "train.batch: 16, was 8"));
  EXPECT_THAT(differences(before, small_with({"train.steps=5"}).recipe),
              ElementsAre("train.steps: 5, was not given", "train.epochs: not given, was 1"));
}

TEST(Continuation, TwoDifferentDecisionsDoNotAgree) {
  const Recipe four = small_with({"train.slot=4"}).recipe, eight = small_with({"train.slot=8"}).recipe;
  EXPECT_THAT(differences(four, eight), ElementsAre("train.slot: 8, was 4"));
  EXPECT_THAT(differences(four, small_with({}).recipe), IsEmpty()) << "auto replays the decision";
}

TEST(Reference, IsWhatTheDocumentationHolds) {
  std::ifstream file("docs/recipe.md");
  ASSERT_TRUE(file) << "tests run from the root of the sources";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(reference_markdown())) << "docs/recipe.md is stale; its table must be:\n"
                                                           << reference_markdown();
}

TEST(Reference, ListsEveryKeyThatARecipeCanHold) {
  const std::string reference = reference_markdown();
  for (const Resolved& resolved : varied()) {
    for (const auto& [path, origin] : resolved.origins) {
      std::string generic = path;
      const size_t bracket = generic.find('[');
      if (bracket != std::string::npos) generic.replace(bracket, 3, "[i]");
      EXPECT_THAT(reference, HasSubstr("| `" + generic + "` |"));
    }
  }
}

}  // namespace
}  // namespace skytrain::recipe
