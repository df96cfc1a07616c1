#include "skytrain/cli/model_choice.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {
namespace {

constexpr const char* kRecipe = R"(
version: 1
name: case
model: {name: mlp, classes: 10, init: /weights/start.pt, init_except: ["fc2.*"]}
data:
  train: {format: synthetic, samples: 100}
train:
  epochs: 2
  batch: 10
  optimizer: {name: sgd, lr: 0.1}
)";

class ModelChoiceTest : public ::testing::Test {
 protected:
  // A run with a checkpoint, for which auto decided bf16 in channels_last.
  ModelChoiceTest() {
    const recipe::Resolved resolved = recipe::resolve_text(kRecipe, "case.yaml", "/recipes", {});
    recipe::Recipe decided = resolved.recipe;
    decided.train.precision = "bf16";
    decided.train.memory_format = "channels_last";
    decided.devices = 7;
    run_ = record::RunDirectory::create(fs_, clock_, "/runs", "case", recipe::explain(resolved),
                                        recipe::to_json(decided), {{"attempts", OrderedJson::array()}})
               .path();
    checkpoint_ = checkpoint::save(fs_, run_ + "/checkpoints", 20);
    fs_.make_directories("/weights");
    write_file_atomically(fs_, "/weights/other.pt", "weights");
  }

  MemoryFileSystem fs_;
  FakeClock clock_;
  std::string run_, checkpoint_;
};

// The classifier that training had begun anew was left out of the weights that were asked for, and drawn at random.
TEST_F(ModelChoiceTest, WeightsThatAreNamedAreTakenWhole) {
  const ModelChoice choice = choose_model(fs_, {.model = run_, .weights = "/weights/other.pt"});
  EXPECT_EQ(choice.recipe.model.init, "/weights/other.pt");
  EXPECT_TRUE(choice.recipe.model.init_except.empty());
  EXPECT_EQ(choice.checkpoint, "");
}

// The run was trained in bf16, as auto had decided, and evaluated in fp32 afterwards.
TEST_F(ModelChoiceTest, WhatAutoDecidedForTheRunHolds) {
  for (const std::string& model : {run_, checkpoint_}) {
    const ModelChoice choice = choose_model(fs_, {.model = model});
    EXPECT_EQ(choice.checkpoint, checkpoint_);
    EXPECT_EQ(choice.recipe.train.precision, "bf16");
    EXPECT_EQ(choice.recipe.train.memory_format, "channels_last");
    EXPECT_FALSE(choice.recipe.devices) << "those of this machine";
    EXPECT_EQ(choice.recipe.model.init_except, std::vector<std::string>{"fc2.*"});
  }
  EXPECT_EQ(choose_model(fs_, {.model = run_, .sets = {"train.precision=fp32"}}).recipe.train.precision, "fp32");
}

}  // namespace
}  // namespace skytrain::cli
