#include "skytrain/cli/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"

namespace skytrain::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kRecipe = R"(
version: 1
name: case
model: {name: mlp, classes: 10}
data:
  train: {format: synthetic, samples: 100}
train:
  epochs: 2
  batch: 10
  optimizer: {name: sgd, lr: 0.1}
)";

recipe::Resolved resolve(const std::vector<std::string>& sets = {}) {
  return recipe::resolve_text(kRecipe, "case.yaml", "/recipes", sets);
}

class ResumeTest : public ::testing::Test {
 protected:
  record::RunDirectory add_run(const recipe::Resolved& resolved) {
    clock_.advance(10);
    return record::RunDirectory::create(fs_, clock_, "/runs", resolved.recipe.name, recipe::explain(resolved),
                                        recipe::to_json(resolved.recipe), {{"attempts", OrderedJson::array()}});
  }
  void set_summary(const record::RunDirectory& run, const std::string& status) {
    write_file_atomically(fs_, run.summary(), "{\"status\": \"" + status + "\"}");
  }
  RunChoice choose(const std::string& resume, const recipe::Resolved& wanted) {
    return choose_run(fs_, "/runs", parse_resume(resume), wanted);
  }

  MemoryFileSystem fs_;
  FakeClock clock_;
};

TEST_F(ResumeTest, WithoutRunsANewOneIsStarted) { EXPECT_FALSE(choose("auto", resolve()).run); }

TEST_F(ResumeTest, AutoContinuesTheNewestRunOfTheRecipe) {
  add_run(resolve());
  const auto newest = add_run(resolve());
  const RunChoice choice = choose("auto", resolve());
  ASSERT_TRUE(choice.run);
  EXPECT_EQ(choice.run->path(), newest.path());
  EXPECT_FALSE(choice.complete);
  EXPECT_FALSE(choice.recipe_changed);
}

TEST_F(ResumeTest, AutoPassesOverRunsOfOtherRecipes) {
  const auto ours = add_run(resolve());
  add_run(resolve({"train.optimizer.lr=0.2"}));
  EXPECT_EQ(choose("auto", resolve()).run->path(), ours.path());
  EXPECT_FALSE(choose("auto", resolve({"seed=9"})).run);
}

TEST_F(ResumeTest, AutoPassesOverADamagedRunWithANote) {
  const auto good = add_run(resolve());
  const auto damaged = add_run(resolve());
  write_file_atomically(fs_, damaged.recipe_json(), "{\"version\": 1");
  const RunChoice choice = choose("auto", resolve());
  EXPECT_EQ(choice.run->path(), good.path());
  EXPECT_THAT(choice.notes, Contains(HasSubstr(damaged.recipe_json())));
}

TEST_F(ResumeTest, OfACompleteRunNothingIsLeft) {
  const auto run = add_run(resolve());
  set_summary(run, "complete");
  const RunChoice choice = choose("auto", resolve());
  EXPECT_TRUE(choice.complete);
  EXPECT_EQ(choice.run->path(), run.path());
}

TEST_F(ResumeTest, AnInterruptedOrFailedRunIsContinued) {
  const auto run = add_run(resolve());
  for (const char* status : {"interrupted", "failed"}) {
    set_summary(run, status);
    EXPECT_FALSE(choose("auto", resolve()).complete) << status;
  }
}

TEST_F(ResumeTest, ARunWhoseSummaryIsDamagedIsContinued) {
  const auto run = add_run(resolve());
  write_file_atomically(fs_, run.summary(), "{\"status\": \"comp");
  const RunChoice choice = choose("auto", resolve());
  ASSERT_TRUE(choice.run);
  EXPECT_FALSE(choice.complete);
}

TEST_F(ResumeTest, NeverStartsANewRun) {
  add_run(resolve());
  EXPECT_FALSE(choose("never", resolve()).run);
}

TEST_F(ResumeTest, WhatAutoDecidedIsReplayed) {
  recipe::Resolved decided = resolve();
  decided.recipe.train.slot = 5;
  decided.recipe.train.precision = "bf16";
  decided.recipe.train.memory_format = "channels_last";
  decided.recipe.train.batch = 12;
  decided.recipe.devices = 2;
  add_run(decided);
  const RunChoice choice = choose("auto", resolve({"train.batch=auto"}));
  ASSERT_TRUE(choice.run);
  EXPECT_EQ(choice.resolved.recipe.train.memory_format, "channels_last");
  EXPECT_EQ(choice.resolved.recipe.train.batch, 12);
  EXPECT_EQ(choice.resolved.recipe.train.slot, 5);
  EXPECT_EQ(choice.resolved.recipe.train.precision, "bf16");
  EXPECT_EQ(choice.resolved.recipe.devices, 2);
  EXPECT_FALSE(choice.recipe_changed);
  EXPECT_FALSE(choose("auto", resolve({"train.batch=auto", "train.slot=2"})).run) << "another slot is another training";
}

TEST_F(ResumeTest, WhatMayChangeBetweenAttemptsTakesTheNewValue) {
  add_run(resolve());
  const RunChoice choice = choose("auto", resolve({"checkpoint.keep=9"}));
  ASSERT_TRUE(choice.run);
  EXPECT_TRUE(choice.recipe_changed);
  EXPECT_EQ(choice.resolved.recipe.checkpoint.keep, 9);
}

// A run of other initial weights, or of another module, was taken for a continuation and went on from the old ones.
TEST_F(ResumeTest, OtherInitialWeightsAreAnotherRun) {
  const std::vector<std::string> stored = {"model.init=/weights/a.pt", "model.init_except=[fc2.*]"};
  add_run(resolve(stored));
  EXPECT_TRUE(choose("auto", resolve(stored)).run);
  EXPECT_FALSE(choose("auto", resolve({"model.init=/weights/b.pt", stored[1]})).run);
  EXPECT_FALSE(choose("auto", resolve({stored[0], "model.init_except=[fc1.*]"})).run);
  EXPECT_FALSE(choose("auto", resolve({stored[0]})).run);
  EXPECT_FALSE(choose("auto", resolve()).run);
}

TEST_F(ResumeTest, AnotherModuleIsAnotherRun) {
  const auto module = [](const std::string& path) {
    return resolve({"model={name: torchscript, classes: 10, path: " + path + "}"});
  };
  const auto run = add_run(module("/models/a.pt"));
  EXPECT_TRUE(choose("auto", module("/models/a.pt")).run);
  EXPECT_FALSE(choose("auto", module("/models/b.pt")).run);
  EXPECT_THROW(choose(run.path(), module("/models/b.pt")), Error);
}

// Whether data in another place are the same only their fingerprint tells: a finished run was reported as that of the
// new data, which nobody had read.
TEST_F(ResumeTest, AFinishedRunOfDataElsewhereIsNotCompleteUnseen) {
  const auto on = [](const std::string& train, const std::string& eval) {
    return resolve({"data.train={format: idx, split: train, path: " + train + "}",
                    "data.eval={format: idx, split: test, path: " + eval + "}"});
  };
  set_summary(add_run(on("/data/a", "/data/a")), "complete");
  EXPECT_TRUE(choose("auto", on("/data/a", "/data/a")).complete);
  for (const auto& elsewhere : {on("/data/b", "/data/a"), on("/data/a", "/data/b")}) {
    const RunChoice choice = choose("auto", elsewhere);
    EXPECT_TRUE(choice.run);
    EXPECT_FALSE(choice.complete);
  }
}

TEST_F(ResumeTest, ADirectoryIsTakenAsItIs) {
  const auto run = add_run(resolve());
  add_run(resolve());
  EXPECT_EQ(choose(run.path() + "/", resolve()).run->path(), run.path());
}

TEST_F(ResumeTest, ADirectoryOfAnotherRecipeIsRefusedWithTheDifferences) {
  const auto run = add_run(resolve());
  try {
    choose(run.path(), resolve({"train.optimizer.lr=0.2", "train.batch=20"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_EQ(error.where(), run.path());
    EXPECT_THAT(error.hint(), HasSubstr("train.optimizer.lr: 0.2, was 0.1"));
    EXPECT_THAT(error.hint(), HasSubstr("train.batch: 20, was 10"));
  }
}

TEST_F(ResumeTest, ALongerRecipeExtendsARunThatIsNamed) {
  const auto run = add_run(resolve());
  set_summary(run, "complete");
  const RunChoice choice = choose(run.path(), resolve({"train.epochs=3"}));
  EXPECT_TRUE(choice.extended);
  EXPECT_FALSE(choice.complete);
  EXPECT_TRUE(choice.recipe_changed);
  EXPECT_EQ(choice.resolved.recipe.train.length.value, 3);
}

TEST_F(ResumeTest, AutoDoesNotExtendButSaysHow) {
  const auto run = add_run(resolve());
  const RunChoice choice = choose("auto", resolve({"train.epochs=3"}));
  EXPECT_FALSE(choice.run);
  EXPECT_THAT(choice.notes, Contains(HasSubstr("--resume " + run.path() + " extends it")));
}

TEST_F(ResumeTest, AShorterRecipeOrOneOfAnotherUnitDoesNotExtend) {
  const auto run = add_run(resolve());
  EXPECT_THROW(choose(run.path(), resolve({"train.epochs=1"})), Error);
  EXPECT_THROW(choose(run.path(), resolve({"train.steps=1000"})), Error);
  EXPECT_THROW(choose(run.path(), resolve({"train.epochs=3", "seed=9"})), Error);
}

TEST_F(ResumeTest, ExtendingAScheduledRunSaysThatTheRateJumps) {
  const auto run = add_run(resolve({"train.schedule={name: cosine}"}));
  const RunChoice choice = choose(run.path(), resolve({"train.schedule={name: cosine}", "train.epochs=3"}));
  EXPECT_THAT(choice.notes, Contains(HasSubstr("learning rate jumps")));
}

TEST_F(ResumeTest, WhatIsNoRunIsRefused) {
  fs_.make_directories("/elsewhere");
  for (const char* path : {"/elsewhere", "/nowhere"}) {
    try {
      choose(path, resolve());
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(error.where(), path);
    }
  }
  EXPECT_THROW(parse_resume(""), Error);
}

}  // namespace
}  // namespace skytrain::cli
