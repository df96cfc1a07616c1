// --set key.path=value: typed like the file, and errors that name the flag.

#include <gmock/gmock.h>

#include "skytrain/recipe/test_recipes.h"

namespace skytrain::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// `--set x=false` stored the text "false", which counts as true.
TEST(Set, ValuesHaveTheTypeOfTheirKey) {
  EXPECT_FALSE(small_with({"train.deterministic=false"}).recipe.train.deterministic);
  EXPECT_FALSE(small_with({"train.deterministic=False"}).recipe.train.deterministic);
  EXPECT_TRUE(small_with({"train.deterministic=true"}).recipe.train.deterministic);
  EXPECT_EQ(small_with({"train.clip_norm=null"}).recipe.train.clip_norm, std::nullopt);
  EXPECT_EQ(small_with({"train.clip_norm=1"}).recipe.train.clip_norm, 1.0);
  EXPECT_EQ(small_with({"train.optimizer.lr=1e-3"}).recipe.train.optimizer.lr, 0.001);
  EXPECT_EQ(small_with({"name=false"}).recipe.name, "false");
  EXPECT_EQ(small_with({"name=8"}).recipe.name, "8");
  EXPECT_EQ(small_with({"name=a=b"}).recipe.name, "a=b") << "only the first = separates";
  EXPECT_EQ(small_with({"train.slot=auto"}).recipe.train.slot, std::nullopt);
  EXPECT_EQ(small_with({"train.slot=4"}).recipe.train.slot, 4);
  EXPECT_EQ(small_with({" train.batch = 16 "}).recipe.train.batch, 16);
}

TEST(Set, RefusalsNameTheFlagAndNoLineOfTheFile) {
  EXPECT_EQ(set_refusal("train.deterministic="),
            "--set train.deterministic=: has no value after \"=\"\n"
            "  write null for \"none\", '\"\"' for an empty text");
  EXPECT_EQ(set_refusal("train.deterministic=yes"), "--set train.deterministic=yes: \"yes\" is neither true nor false");
  EXPECT_EQ(set_refusal("train.batch=8.0"),
            "--set train.batch=8.0: \"8.0\" is not a whole number in digits\n  write 8");
  EXPECT_EQ(set_refusal("train.batch=1e1"),
            "--set train.batch=1e1: \"1e1\" is not a whole number in digits\n  write 10");
  EXPECT_EQ(set_refusal("train.bath=8"),
            "--set train.bath=8: unknown key \"bath\" (did you mean \"batch\"?)\n"
            "  known: epochs, steps, batch, slot, loss, label_smoothing, mixup, cutmix, optimizer, schedule, "
            "precision, clip_norm, "
            "clip_value, ema, memory_format, activation_checkpointing, early_stop, loss_spike, "
            "deterministic");
  EXPECT_THAT(set_refusal("trian.batch=8"),
              StartsWith("--set trian.batch=8: unknown key \"trian\" (did you mean \"train\"?)"));
  EXPECT_EQ(set_refusal("train"),
            "--set train: has no value\n  write --set key.path=value, like --set train.batch=128");
  EXPECT_THAT(set_refusal("train.optimizer.lr=.nan"),
              StartsWith("--set train.optimizer.lr=.nan: \".nan\" is not a finite number"));
  EXPECT_THAT(set_refusal("train.optimizer={name: adam, lr: 1e}"),
              StartsWith("--set train.optimizer={name: adam, lr: 1e}: train.optimizer.lr: \"1e\" is not a number"));
}

TEST(Set, AKeyInTheWrongPlaceIsToldWhereItBelongs) {
  EXPECT_THAT(set_refusal("train.momentum=0.5"), HasSubstr("it belongs elsewhere: train.optimizer.momentum"));
  EXPECT_THAT(set_refusal("lr=0.5"), HasSubstr("it belongs elsewhere: train.optimizer.lr"));
}

TEST(Set, MalformedPathsAndValuesAreRefused) {
  for (const char* text : {"=5", ".a=5", "a..b=5", "a.=5", "train.[0]=5", "a[=5", "a[x]=5", "a[-1]=5", "a[0=5", "[0]=5",
                           "a[99999999999999999999999]=5", "a[0]b=5"}) {
    EXPECT_THAT(set_refusal(text), HasSubstr("does not start with a key path")) << text;
  }
  for (const char* text : {"train.optimizer={name: adam", "name='open", "name=*x", "name=a: b", "train.batch=%8"}) {
    const std::string message = set_refusal(text);
    EXPECT_THAT(message, StartsWith(std::string("--set ") + text + ": ")) << text;
  }
  EXPECT_THAT(set_refusal("name=caf\xe9"), HasSubstr("not UTF-8"));
  EXPECT_THAT(set_refusal("train.optimizer={lr: 1, lr: 2}"), HasSubstr("key \"lr\" appears twice"));
}

TEST(Set, AMappingIsReplacedAsAWhole) {
  const Recipe recipe = small_with({"train.optimizer={name: adam, lr: 1e-3}"}).recipe;
  EXPECT_EQ(recipe.train.optimizer.name, "adam");
  EXPECT_EQ(recipe.train.optimizer.lr, 0.001);
  EXPECT_EQ(recipe.train.optimizer.momentum, 0) << "the file's momentum went with the mapping";
}

TEST(Set, ChangingOnlyTheNameKeepsTheOtherKeysAndSaysWhichDoNotFit) {
  EXPECT_EQ(set_refusal("train.optimizer.name=adam"),
            "recipe.yaml:11:46: train.optimizer.momentum: \"adam\" does not take this key (sgd does)\n"
            "  keys of adam: name, lr, betas, eps, weight_decay, no_decay, groups");
}

TEST(Set, ReachesIntoListsAndReplacesThem) {
  const std::string text = small_but("train:\n  epochs",
                                     "  transforms:\n"
                                     "    - normalize: {mean: [0.1], std: [0.3]}\n"
                                     "    - pad_crop: {pad: 2}\n"
                                     "train:\n  epochs");
  EXPECT_THAT(resolve(text, {"data.transforms=[]"}).recipe.data.transforms, IsEmpty());
  const Resolved changed =
      resolve(text, {"data.transforms[0].normalize.mean=[0.5]", "data.transforms[1].pad_crop.pad=4"});
  EXPECT_THAT(changed.recipe.data.transforms[0].mean, ElementsAre(0.5));
  EXPECT_THAT(changed.recipe.data.transforms[0].std, ElementsAre(0.3));
  EXPECT_EQ(changed.recipe.data.transforms[1].pad, 4);
  EXPECT_EQ(refusal(text, {"data.transforms[2].pad_crop.pad=4"}),
            "--set data.transforms[2].pad_crop.pad=4: data.transforms has 2 elements; the first is [0]\n"
            "  replace the whole list instead");
  EXPECT_THAT(set_refusal("train[0]=1"), HasSubstr("train is a mapping, not a list"));
  EXPECT_THAT(set_refusal("name.x=1"), HasSubstr("name is \"case\", which has no keys"));
}

TEST(Set, ALaterOneWins) {
  EXPECT_EQ(small_with({"train.epochs=2", "train.epochs=3"}).recipe.train.length,
            (Duration{3, Duration::Unit::kEpochs}));
  EXPECT_EQ(small_with({"train.optimizer.lr=1", "train.optimizer={name: sgd, lr: 2}"}).recipe.train.optimizer.lr, 2);
}

TEST(Set, StepsReplaceTheEpochsOfTheFileAndTheOtherWayRound) {
  const Resolved steps = small_with({"train.steps=5"});
  EXPECT_EQ(steps.recipe.train.length, (Duration{5, Duration::Unit::kSteps}));
  EXPECT_EQ(steps.origins.count("train.epochs"), 0u);
  EXPECT_EQ(steps.origins.at("train.steps").place, "--set train.steps=5");
  const std::string in_steps = small_but("epochs: 1", "steps: 9");
  EXPECT_EQ(resolve(in_steps, {"train.epochs=2"}).recipe.train.length, (Duration{2, Duration::Unit::kEpochs}));
  EXPECT_EQ(small_with({"train.steps=5", "train.epochs=4"}).recipe.train.length,
            (Duration{4, Duration::Unit::kEpochs}));
}

TEST(Set, CreatesMappingsThatTheFileLeftOut) {
  const Recipe recipe =
      small_with({"train.schedule.name=cosine", "train.schedule.warmup=5%", "checkpoint.keep=1"}).recipe;
  EXPECT_EQ(recipe.train.schedule.name, "cosine");
  EXPECT_EQ(recipe.checkpoint.keep, 1);
}

TEST(Set, PathsAreAgainstTheCurrentFolderNotTheRecipes) {
  const Recipe recipe = small_with({"data.eval.path=/elsewhere/mnist"}).recipe;
  EXPECT_EQ(recipe.data.train.path, "/recipes/mnist");
  EXPECT_EQ(recipe.data.eval->path, "/elsewhere/mnist");
  const std::string here = small_with({"data.eval.path=mnist"}).recipe.data.eval->path;
  EXPECT_TRUE(here.starts_with("/") && here.ends_with("/mnist"));
  EXPECT_NE(here, "/recipes/mnist");
}

TEST(Set, OriginsNameTheFlag) {
  const Resolved resolved = small_with({"train.optimizer={name: adam, lr: 1e-3}"});
  EXPECT_EQ(resolved.origins.at("train.optimizer.lr").kind, Origin::Kind::kSet);
  EXPECT_EQ(resolved.origins.at("train.optimizer.lr").place, "--set train.optimizer={name: adam, lr: 1e-3}");
  EXPECT_EQ(resolved.origins.at("train.batch").kind, Origin::Kind::kFile);
}

}  // namespace
}  // namespace skytrain::recipe
