#include "skytrain/recipe/resolve.h"

#include <gmock/gmock.h>

#include "skytrain/recipe/test_recipes.h"

namespace skytrain::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Unit = Duration::Unit;

TEST(Resolve, ReadsEveryKey) {
  const Recipe r = resolve(R"(
version: 1
name: all-keys
seed: 42
model: {name: mlp, classes: 4, hidden: [32, 16]}
data:
  train: {format: synthetic, samples: 500, channels: 3, height: 8, width: 9}
  eval: null
  transforms:
    - normalize: {mean: [0.1, 0.2, 0.3], std: [1, 2, 3]}
    - pad_crop: {pad: 2}
    - flip: {p: 0.25}
train:
  steps: 500
  batch: 64
  slot: 16
  loss: cross_entropy
  optimizer: {name: adam, lr: 1e-3, betas: [0.8, 0.99], eps: 1e-6, weight_decay: 1e-4, no_decay: true,
              groups: [{"fc1.*": {lr_scale: 0.1}}, {"*.bias": {weight_decay: 0, lr_scale: 2}}]}
  schedule: {name: cosine, warmup: 5%, min_lr: 1e-5}
  precision: bf16
  clip_norm: 1
  clip_value: 0.5
  label_smoothing: 0.1
  mixup: 0.2
  cutmix: 1
  ema: 0.999
  memory_format: channels_last
  activation_checkpointing: true
  deterministic: true
eval: {batch: 10, every: 100 steps}
checkpoint: {every: [1 epoch, 10 min], keep: 2}
devices: 2
)")
                       .recipe;
  EXPECT_EQ(r.name, "all-keys");
  EXPECT_EQ(r.seed, 42u);
  EXPECT_EQ(r.model.name, "mlp");
  EXPECT_EQ(r.model.classes, 4);
  EXPECT_THAT(r.model.hidden, ElementsAre(32, 16));
  EXPECT_EQ(r.data.train.format, "synthetic");
  EXPECT_EQ(r.data.train.samples, 500u);
  EXPECT_EQ(r.data.train.channels, 3);
  EXPECT_EQ(r.data.train.height, 8);
  EXPECT_EQ(r.data.train.width, 9);
  EXPECT_EQ(r.data.train.path, "");
  EXPECT_FALSE(r.data.eval);
  ASSERT_EQ(r.data.transforms.size(), 3u);
  EXPECT_EQ(r.data.transforms[0].name, "normalize");
  EXPECT_THAT(r.data.transforms[0].mean, ElementsAre(0.1, 0.2, 0.3));
  EXPECT_THAT(r.data.transforms[0].std, ElementsAre(1, 2, 3));
  EXPECT_EQ(r.data.transforms[1].name, "pad_crop");
  EXPECT_EQ(r.data.transforms[1].pad, 2);
  EXPECT_EQ(r.data.transforms[2].name, "flip");
  EXPECT_EQ(r.data.transforms[2].p, 0.25);
  EXPECT_EQ(r.train.length, (Duration{500, Unit::kSteps}));
  EXPECT_EQ(r.train.batch, 64);
  EXPECT_EQ(r.train.slot, 16);
  EXPECT_EQ(r.train.loss, "cross_entropy");
  EXPECT_EQ(r.train.optimizer.name, "adam");
  EXPECT_EQ(r.train.optimizer.lr, 1e-3);
  EXPECT_EQ(r.train.optimizer.beta1, 0.8);
  EXPECT_EQ(r.train.optimizer.beta2, 0.99);
  EXPECT_EQ(r.train.optimizer.eps, 1e-6);
  EXPECT_EQ(r.train.optimizer.weight_decay, 1e-4);
  EXPECT_TRUE(r.train.optimizer.no_decay);
  ASSERT_EQ(r.train.optimizer.groups.size(), 2u);
  EXPECT_EQ(r.train.optimizer.groups[0], (ParameterGroupSpec{"fc1.*", 0.1, std::nullopt}));
  EXPECT_EQ(r.train.optimizer.groups[1], (ParameterGroupSpec{"*.bias", 2, 0.0}));
  EXPECT_EQ(r.train.schedule.name, "cosine");
  EXPECT_EQ(r.train.schedule.warmup, (Duration{5, Unit::kPercent}));
  EXPECT_EQ(r.train.schedule.min_lr, 1e-5);
  EXPECT_EQ(r.train.precision, "bf16");
  EXPECT_EQ(r.train.clip_norm, 1.0);
  EXPECT_EQ(r.train.clip_value, 0.5);
  EXPECT_EQ(r.train.label_smoothing, 0.1);
  EXPECT_EQ(r.train.mixup, 0.2);
  EXPECT_EQ(r.train.cutmix, 1.0);
  EXPECT_EQ(r.train.ema, 0.999);
  EXPECT_EQ(r.train.memory_format, "channels_last");
  EXPECT_TRUE(r.train.activation_checkpointing);
  EXPECT_TRUE(r.train.deterministic);
  EXPECT_EQ(r.eval.batch, 10);
  EXPECT_EQ(r.eval.every, (Duration{100, Unit::kSteps}));
  EXPECT_THAT(r.checkpoint.every, ElementsAre(Duration{1, Unit::kEpochs}, Duration{600, Unit::kSeconds}));
  EXPECT_EQ(r.checkpoint.keep, 2);
  EXPECT_EQ(r.devices, 2);
}

TEST(Resolve, WhatIsLeftOutHasTheDefaultOfTheHeader) {
  const Resolved resolved = resolve(small_but("seed: 7\n", ""));
  const Recipe& r = resolved.recipe;
  const Recipe defaults;
  EXPECT_EQ(r.seed, defaults.seed);
  EXPECT_EQ(r.train.slot, std::nullopt);
  EXPECT_EQ(r.train.schedule, defaults.train.schedule);
  EXPECT_EQ(r.train.precision, "auto");
  EXPECT_EQ(r.train.clip_norm, std::nullopt);
  EXPECT_EQ(r.eval, defaults.eval);
  EXPECT_EQ(r.checkpoint, defaults.checkpoint);
  EXPECT_EQ(r.devices, std::nullopt);
  EXPECT_EQ(resolved.origins.at("checkpoint.every").kind, Origin::Kind::kDefault);
  EXPECT_EQ(resolved.origins.at("train.schedule.name").kind, Origin::Kind::kDefault);
  EXPECT_EQ(resolved.origins.count("train.steps"), 0u);
}

TEST(Resolve, OriginsAreLinesAndColumns) {
  const Resolved resolved = resolve(kSmall);
  EXPECT_EQ(resolved.origins.at("train.batch").place, "recipe.yaml:10:10");
  EXPECT_EQ(resolved.origins.at("train.optimizer.lr").place, "recipe.yaml:11:30");
  EXPECT_EQ(resolved.origins.at("data.eval.split").place, "recipe.yaml:7:44");
}

TEST(Resolve, UnknownNamesAndKeysAreAnsweredWithTheNearest) {
  EXPECT_EQ(refusal(small_but("{name: sgd", "{name: adamm")),
            "recipe.yaml:11:21: train.optimizer.name: unknown optimizer \"adamm\" (did you mean \"adam\"?)\n"
            "  known: sgd, adam, adamw, lamb");
  EXPECT_EQ(refusal(small_but("name: simplecnn", "name: simpelcnn")),
            "recipe.yaml:4:15: model.name: unknown model \"simpelcnn\" (did you mean \"simplecnn\"?)\n"
            "  known: simplecnn, mlp, convnet, resnet18, resnet34, resnet50, torchscript, plugin");
  EXPECT_EQ(refusal(small_but("classes: 10", "clases: 10")),
            "recipe.yaml:4:26: model.clases: unknown key \"clases\" (did you mean \"classes\"?)\n"
            "  known: name, classes, init, init_except");
  EXPECT_EQ(refusal(small_but("format: idx", "format: idxx")),
            "recipe.yaml:6:32: data.train.format: unknown format \"idxx\" (did you mean \"idx\"?)\n"
            "  known: idx, cifar10, imagefolder, webdataset, mds, csv, jsonl, synthetic");
  EXPECT_THAT(refusal(small_but("split: train", "split: val")), HasSubstr("unknown split \"val\""));
}

TEST(Resolve, AMisspeltRequiredKeyIsOneProblemNotTwo) {
  EXPECT_EQ(refusal(small_but("batch: 8", "bacth: 8")),
            "recipe.yaml:10:3: train.bacth: unknown key \"bacth\" (did you mean \"batch\"?)\n"
            "  known: epochs, steps, batch, slot, loss, label_smoothing, mixup, cutmix, optimizer, schedule, "
            "precision, clip_norm, "
            "clip_value, ema, memory_format, activation_checkpointing, early_stop, loss_spike, "
            "deterministic");
}

TEST(Resolve, MissingKeysAreNamedWithWhatTheyAre) {
  EXPECT_EQ(refusal(small_but("  batch: 8\n", "")),
            "recipe.yaml:9:3: train.batch: is missing\n"
            "  samples per optimizer step over all devices; auto: the largest power of two "
            "for each device that fits into memory, at most a tenth of the data and 4,096 (integer, 1 to "
            "1,000,000,000, or auto)");
  EXPECT_THAT(refusal(small_but("version: 1\n", "")), StartsWith("recipe.yaml:1:1: version: is missing"));
  EXPECT_THAT(refusal(small_but("path: mnist, ", "")), StartsWith("recipe.yaml:6:10: data.train.path: is missing"));
  EXPECT_THAT(refusal(small_but("model: {name: simplecnn, classes: 10}\n", "")), HasSubstr("model: is missing"));
  EXPECT_THAT(refusal(small_but("model: {name: simplecnn, classes: 10}", "model:")),
              StartsWith("recipe.yaml:4:1: model: has no value, expected a mapping\n  its keys: name"));
  EXPECT_THAT(refusal(small_but("model: {name: simplecnn, classes: 10}", "model: simplecnn")),
              StartsWith("recipe.yaml:4:8: model: is \"simplecnn\", expected a mapping\n  its keys: name"));
}

TEST(Resolve, KeysOfAnotherNameAreRefused) {
  EXPECT_EQ(refusal(small_but("classes: 10", "hidden: [32]")),
            "recipe.yaml:4:34: model.hidden: \"simplecnn\" does not take this key (mlp does)\n"
            "  keys of simplecnn: name, classes, init, init_except");
  EXPECT_THAT(refusal(small_but("name: sgd", "name: adam")),
              HasSubstr("train.optimizer.momentum: \"adam\" does not take this key (sgd does)"));
  EXPECT_THAT(refusal(small_but("momentum: 0.9", "betas: [0.9, 0.99]")),
              HasSubstr("train.optimizer.betas: \"sgd\" does not take this key (adam, adamw, lamb do)"));
  EXPECT_THAT(refusal(small_but("{path: mnist, format: idx, split: train}", "{format: synthetic, path: mnist}")),
              HasSubstr("data.train.path: \"synthetic\" does not take this key (idx, cifar10, imagefolder, webdataset, "
                        "mds, csv, jsonl do)"));
  EXPECT_THAT(
      set_refusal("train.schedule={name: constant, min_lr: 0.1}"),
      HasSubstr("\"constant\" does not take this key (cosine, cosine_restarts, linear, polynomial, plateau do)"));
}

TEST(Resolve, ContradictionsAreRefused) {
  EXPECT_EQ(refusal(small_but("epochs: 1", "epochs: 1\n  steps: 100")),
            "recipe.yaml:10:10: train.steps: the length is given twice, as epochs and as steps\n  remove one of them");
  EXPECT_EQ(refusal(small_but("momentum: 0.9", "nesterov: true")),
            "recipe.yaml:11:46: train.optimizer.nesterov: needs a momentum above 0\n"
            "  set momentum: 0.9, or nesterov: false");
  EXPECT_THAT(set_refusal("train.schedule={name: cosine, min_lr: 0.1}"),
              HasSubstr("train.schedule.min_lr: is 0.1, more than the learning rate of 0.05"));
  EXPECT_THAT(refusal(small_but("batch: 8", "batch: 8\n  slot: 9")),
              StartsWith("recipe.yaml:11:9: train.slot: is 9, more than the batch of 8"));
  EXPECT_NO_THROW(small_with({"train.slot=8"}));
}

TEST(Resolve, NumbersOutOfTheirRangeAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"train.batch=0", "is 0, expected 1 to 1,000,000,000"},
      {"train.batch=-8", "is -8, expected 1 to"},
      {"train.epochs=0", "is 0, expected > 0"},
      {"train.epochs=-1", "is -1, expected > 0"},
      {"train.steps=0", "is 0, expected 1 to 1,000,000,000,000"},
      {"train.steps=1.5", "is not a whole number"},
      {"train.slot=0", "is 0, expected 1 to"},
      {"train.slot=big", "\"big\" is not a whole number"},
      {"train.optimizer.lr=0", "is 0, expected > 0"},
      {"train.optimizer.lr=-1e-3", "is -0.001, expected > 0"},
      {"train.optimizer.momentum=1", "is 1, expected >= 0 and < 1"},
      {"train.optimizer.weight_decay=-1", "is -1, expected >= 0"},
      {"train.optimizer={name: adam, lr: 1, betas: [0.9]}", "has 1 element, expected 2"},
      {"train.optimizer={name: adam, lr: 1, betas: [0.9, 1]}", "train.optimizer.betas[1]: is 1, expected >= 0 and < 1"},
      {"train.optimizer={name: adam, lr: 1, betas: 0.9}", "is \"0.9\", expected a list"},
      {"train.optimizer={name: adam, lr: 1, eps: 0}", "is 0, expected > 0"},
      {"train.clip_norm=0", "is 0, expected > 0"},
      {"train.precision=fp64", "unknown precision \"fp64\""},
      {"train.loss=nll", "unknown loss \"nll\""},
      {"seed=-1", "is -1, expected 0 or more"},
      {"seed=18446744073709551616", "is too large"},
      {"version=2", "is 2, expected 1"},
      {"model.classes=1", "is 1, and cross_entropy tells at least 2 classes apart"},
      {"model.classes=0", "is 0, expected 1 to 1,000,000"},
      {"model={name: mlp, hidden: []}", "has 0 elements, expected 1 to 64"},
      {"model={name: mlp, hidden: [0]}", "model.hidden[0]: is 0, expected 1 to 65,536"},
      {"model={name: convnet, width: 3}", "is 3, expected 4 to 1,024"},
      {"data.eval={format: synthetic, samples: 0}", "is 0, expected 1 to 1,000,000,000,000"},
      {"eval.batch=0", "is 0, expected 1 to"},
      {"eval.every=0 steps", "\"0 steps\" is zero"},
      {"eval.every=10 min", "has a unit that is not for this key"},
      {"checkpoint.keep=0", "is 0, expected 1 to"},
      {"checkpoint.every=null", "has no value"},
      {"devices=0", "is 0, expected 1 to 256"},
      {"devices=all", "\"all\" is not a whole number"},
      {"name=../../etc", "names a folder"},
      {"name=.hidden", "starts with \".\""},
      {"name=''", "is empty"},
      {"name=null", "has no value"},
      {"name=[a]", "is a list, expected a text"},
      {"data.train.path=''", "is empty, expected a path"},
      {"train.deterministic='true'", "is the text \"true\", expected true or false"},
      {"train.batch='8'", "is the text \"8\", expected a whole number"},
      {"train.optimizer.lr=[1]", "is a list, expected a number"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = set_refusal(text);
    EXPECT_THAT(message, StartsWith(std::string("--set ") + text + ": ")) << text;
    EXPECT_THAT(message, HasSubstr(expected)) << text;
  }
}

// 9223372036854775807 steps went through a double and came out negative.
TEST(Resolve, AbsurdLengthsAreRefused) {
  EXPECT_THAT(refusal(small_but("epochs: 1", "steps: 9223372036854775807")),
              HasSubstr("train.steps: is 9223372036854775807, expected 1 to 1,000,000,000,000"));
  EXPECT_THAT(refusal(small_but("epochs: 1", "steps: 1000000000001")), HasSubstr("train.steps: is 1000000000001"));
  EXPECT_THAT(refusal(small_but("epochs: 1", "epochs: 1e300")), HasSubstr("train.epochs: is 1e+300, expected > 0"));
  EXPECT_THAT(refusal(kSmall, {"train.steps=1000000000000", "train.batch=1000000000"}),
              HasSubstr("1000000000000 steps of 1000000000 samples are more samples than can be counted"));
  EXPECT_THAT(refusal(kSmall, {"data.train={format: synthetic, samples: 9223372036854775807}"}),
              HasSubstr("data.train.samples: is 9223372036854775807"));
  EXPECT_EQ(small_with({"train.steps=1000000000000"}).recipe.train.length.value, 1e12);
}

TEST(Resolve, DataInAFolderThatIsNotUtf8IsRefused) {
  try {
    resolve_text(kSmall, "recipe.yaml", "/caf\xe9", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_THAT(error.message(), HasSubstr("which is not UTF-8"));
  }
}

TEST(Resolve, TransformsAreOneKeyMappings) {
  const std::pair<const char*, const char*> cases[] = {
      {"[normalise: {mean: [0], std: [1]}]", "unknown transform \"normalise\" (did you mean \"normalize\"?)"},
      {"[normalize]", "is \"normalize\", expected one transform like"},
      {"[{normalize: {mean: [0], std: [1]}, pad_crop: {pad: 2}}]", "is a mapping of 2 keys, expected one transform"},
      {"[normalize: {mean: [0], std: [0]}]", "std[0]: is 0, expected > 0"},
      {"[normalize: {mean: [0], std: [-1]}]", "std[0]: is -1, expected > 0"},
      {"[normalize: {mean: [0, 0], std: [1]}]", "std: has length 1, and mean has 2"},
      {"[normalize: {mean: [0]}]", "std: is missing"},
      {"[normalize: {mean: 0.5, std: [1]}]", "mean: is \"0.5\", expected a list"},
      {"[normalize: {mean: [0], std: [1], pad: 2}]", "\"normalize\" does not take this key (pad_crop does)"},
      {"[pad_crop: {pad: 0}]", "pad: is 0, expected 1 to 1,024"},
      {"[pad_crop: ]", "pad_crop: has no value, expected a mapping"},
      {"{normalize: {mean: [0], std: [1]}}",
       "data.transforms={normalize: {mean: [0], std: [1]}}: is a mapping, expected a list"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(set_refusal(std::string("data.transforms=") + text), HasSubstr(expected)) << text;
  }
}

TEST(Resolve, EveryTakesOneAmountOrAList) {
  EXPECT_THAT(small_with({"checkpoint.every=5 steps"}).recipe.checkpoint.every, ElementsAre(Duration{5, Unit::kSteps}));
  EXPECT_THAT(small_with({"checkpoint.every=[]"}).recipe.checkpoint.every, ElementsAre());
  EXPECT_EQ(set_refusal("checkpoint.every=[5 lightyears]"),
            "--set checkpoint.every=[5 lightyears]: checkpoint.every[0]: unknown unit \"lightyears\"\n"
            "  known: steps, samples, epochs, %, s, min, h, d");
}

// Warm-up as long as the run divided by zero; warm-up 0 started at the wrong rate.
TEST(Resolve, WarmupMayFillTheRunButNotExceedAHundredPercent) {
  const auto warmup = [](const std::string& text) {
    return small_with({"train.schedule={name: cosine, warmup: " + text + "}"}).recipe.train.schedule.warmup;
  };
  EXPECT_EQ(warmup("0 steps"), (Duration{0, Unit::kSteps}));
  EXPECT_EQ(warmup("1 steps"), (Duration{1, Unit::kSteps}));
  EXPECT_EQ(warmup("10 steps"), (Duration{10, Unit::kSteps}));
  EXPECT_EQ(warmup("25 steps"), (Duration{25, Unit::kSteps})) << "longer than the run: the ramp is cut";
  EXPECT_EQ(warmup("100%"), (Duration{100, Unit::kPercent}));
  const auto refused = [](const std::string& text) {
    return refusal(small_but("  epochs: 1", "  schedule: {name: cosine, warmup: " + text + "}\n  epochs: 1"));
  };
  EXPECT_EQ(refused("120%"),
            "recipe.yaml:9:36: train.schedule.warmup: \"120%\" is more than the whole run\n"
            "  known here: steps, samples, epochs, %");
  EXPECT_EQ(refused("-1 steps"), "recipe.yaml:9:36: train.schedule.warmup: \"-1 steps\" is negative");
  EXPECT_EQ(refused("5 parsecs"),
            "recipe.yaml:9:36: train.schedule.warmup: unknown unit \"parsecs\"\n"
            "  known: steps, samples, epochs, %");
  EXPECT_THAT(refused("5"), HasSubstr("\"5\" has no unit"));
  EXPECT_THAT(refused("5 min"), HasSubstr("has a unit that is not for this key"));
}

// `1e-3` was a string in YAML and crashed the optimizer.
TEST(Resolve, LearningRatesAreNumbersInEveryYaml12Spelling) {
  const std::pair<const char*, double> good[] = {{"1e-3", 1e-3},  {"2e-5", 2e-5}, {"1E-3", 1e-3},  {".001", 1e-3},
                                                 {"+0.01", 0.01}, {"1.", 1},      {"5.0e-1", 0.5}, {"1", 1},
                                                 {"3e-4", 3e-4},  {"1e+0", 1}};
  for (const auto& [text, value] : good) {
    EXPECT_EQ(resolve(small_but("lr: 0.05", std::string("lr: ") + text)).recipe.train.optimizer.lr, value) << text;
  }
  for (const char* text : {"1e", "\"1,5\"", "0.1.2", "1e-3x", "1e999", "-1e-3", ".nan", "0x1p-3", "１e-3", "1 e-3",
                           "'1e-3'", "1_000e-6", ".inf", "", "~", "[1e-3]", "{a: 1}", "true"}) {
    EXPECT_THAT(refusal(small_but("lr: 0.05", std::string("lr: ") + text)), StartsWith("recipe.yaml:11:")) << text;
  }
}

TEST(Resolve, AllProblemsAreFoundAndTheFirstInTheFileIsShown) {
  const std::string message = refusal(
      "version: 1\nname: case\nseed: x\nmodel: {name: nope}\ndata:\n  train: {format: synthetic, smaples: 1}\n"
      "train:\n  batch: 0\n  optimizer: {name: sgd, lr: 1}\n");
  EXPECT_EQ(message,
            "recipe.yaml:3:7: seed: \"x\" is not a whole number\n"
            "  write it in digits, like 64\n"
            "  3 more problems: recipe.yaml:4:15: model.name; recipe.yaml:6:30: data.train.smaples; "
            "recipe.yaml:8:10: train.batch");
}

TEST(Resolve, HostileTextCannotMoveTheCursorOrFloodTheTerminal) {
  const std::string message = refusal(small_but("name: sgd", "name: \"\\e[2J" + std::string(100000, 'x') + "\""));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 1000u);
}

class ResolveFile : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const auto file = fs_.open_write(path, FileSystem::Mode::kTruncate);
    file->append(text);
    file->close();
  }
  std::string refused(const std::string& path) {
    try {
      resolve_file(fs_, path, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      return error.message();
    }
    ADD_FAILURE() << "accepted: " << path;
    return {};
  }
  MemoryFileSystem fs_;
};

TEST_F(ResolveFile, PathsAreAgainstTheRecipesFolder) {
  fs_.make_directories("/home/me/recipes");
  put("/home/me/recipes/mnist.yaml", small_but("path: mnist", "path: ../data/mnist/"));
  const Resolved resolved = resolve_file(fs_, "/home/me/recipes/mnist.yaml", {});
  EXPECT_EQ(resolved.recipe.data.train.path, "/home/me/data/mnist");
  EXPECT_EQ(resolved.recipe.data.eval->path, "/home/me/recipes/mnist");
  EXPECT_EQ(resolved.file, "/home/me/recipes/mnist.yaml");
}

TEST_F(ResolveFile, MissingFilesAreNamedWithTheirNeighbours) {
  fs_.make_directories("/r/empty");
  put("/r/mnist.yaml", kSmall);
  put("/r/notes.txt", "");
  EXPECT_EQ(refused("/r/mnits.yaml"), "/r/mnits.yaml: no such file\n  did you mean \"/r/mnist.yaml\"?");
  EXPECT_EQ(refused("/r/something_else.yaml"), "/r/something_else.yaml: no such file\n  recipes there: mnist.yaml");
  EXPECT_EQ(refused("/r/empty/x.yaml"), "/r/empty/x.yaml: no such file");
  EXPECT_EQ(refused("/none/x.yaml"), "/none/x.yaml: no such file\n  there is no folder /none");
}

TEST_F(ResolveFile, AFolderIsNoRecipe) {
  fs_.make_directories("/r");
  put("/r/recipe.yaml", kSmall);
  EXPECT_EQ(refused("/r"), "/r: is a folder, expected a recipe file\n  did you mean \"/r/recipe.yaml\"?");
}

TEST_F(ResolveFile, AHugeFileIsRefusedUnread) {
  put("/train.bin", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(refused("/train.bin"),
            "/train.bin: is 1.0 MiB, and a recipe has at most 1 MiB\n  is this the recipe, or a data file?");
}

}  // namespace
}  // namespace skytrain::recipe
