// What fits a budget of memory, where it is not a step of training.

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "skytrain/base/error.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/evaluator.h"
#include "skytrain/train/run_setup.h"

namespace skytrain::train {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A sample has 12.5 KiB as floats.
constexpr char kRecipe[] = R"(
version: 1
name: case
model: {name: mlp, classes: 4, hidden: [8]}
data:
  train: {format: synthetic, samples: 800, height: 56, width: 56}
  eval: {format: synthetic, samples: 700, height: 56, width: 56}
train: {epochs: 1, batch: 800, slot: 800, optimizer: {name: sgd, lr: 0.05}}
devices: 1
)";

class WithinMemory : public testing::Test {
 protected:
  WithinMemory()
      : recipe(recipe::resolve_text(kRecipe, "case.yaml", "/", {}).recipe),
        train(data::open_dataset(fs, recipe.data.train, training_data_options(recipe))),
        eval(data::open_dataset(fs, *recipe.data.eval, evaluation_data_options(recipe, train->info()))) {
    tensor::install_memory_budget();
  }
  ~WithinMemory() override { tensor::set_memory_budget(std::nullopt); }

  static void leave(uint64_t bytes) { tensor::set_memory_budget(tensor::memory_use().live + bytes); }
  Engine::Options options() const { return engine_options(recipe, Machine{.cores = 1}, {1, 56, 56}); }

  MemoryFileSystem fs;
  recipe::Recipe recipe;
  std::unique_ptr<data::Dataset> train, eval;
};

// `skytrain eval` of a model that had trained within its budget ran out of memory: its batch is another one.
TEST_F(WithinMemory, AnEvaluationTakesSmallerBatchesToTheSameResult) {
  Engine engine(recipe.model, recipe.train.optimizer, 7, options());
  const auto never = [] { return false; };
  const EvaluationSet set(std::move(eval), recipe, never);
  const auto expected = evaluate(engine, set, recipe.model.classes, 700, never);
  ASSERT_TRUE(expected);

  leave(2 * kMiB);
  int64_t batch = 700;
  std::vector<std::string> notes;
  const auto note = [&](const std::string& line) { notes.push_back(line); };
  const auto found = evaluate_within_memory(engine, set, recipe.model.classes, batch, never, note);
  ASSERT_TRUE(found);
  EXPECT_LT(batch, int64_t(2 * kMiB / (56 * 56 * 4)));
  EXPECT_GT(batch, 10);
  EXPECT_GE(notes.size(), 2u);
  EXPECT_THAT(notes, Each(HasSubstr("evaluating in batches of ")));
  EXPECT_EQ(found->result.samples, 700u);
  EXPECT_NEAR(found->result.loss, expected->result.loss, 1e-6);
  EXPECT_EQ(found->confusion, expected->confusion);

  leave(1000);
  try {
    evaluate_within_memory(engine, set, recipe.model.classes, batch, never, note);
    ADD_FAILURE() << "a sample in 1000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), HasSubstr("a single sample does not fit"));
  }
}

// The first slot did not fit, which would have been halved in training: the run ended before its first step.
TEST_F(WithinMemory, AutomaticPrecisionIsMeasuredOnWhatFits) {
  const DataFeed feed(*train, recipe);
  Engine engine(recipe.model, recipe.train.optimizer, 7, options());
  const auto measured = [&] {
    return measure_precision(recipe, Machine{.cores = 1}, feed, train->info(), engine.model());
  };
  leave(2 * kMiB);
  EXPECT_THAT(measured().first, AnyOf("fp32", "bf16"));
  leave(1000);
  EXPECT_THROW(measured(), tensor::OutOfMemory) << "not even one sample";
}

// Hides what was thrown, as the interpreter of TorchScript does in a backward pass.
class Interpreted : public model::Model {
 public:
  Interpreted() { weight_ = add_parameter("weight", at::ones({4, 56 * 56}, at::kFloat)); }
  at::Tensor forward(const at::Tensor& images) override {
    try {
      at::empty({images.size(0), 4096}, at::kFloat);
    } catch (const tensor::OutOfMemory&) {
      throw std::runtime_error("the interpreter failed");
    }
    return images.flatten(1).matmul(weight_.t());
  }

 private:
  at::Tensor weight_;
};

TEST_F(WithinMemory, AutomaticPrecisionKnowsWhatAnInterpreterMadeOfIt) {
  const DataFeed feed(*train, recipe);
  Interpreted model;
  const auto measured = [&] { return measure_precision(recipe, Machine{.cores = 1}, feed, train->info(), model); };
  leave(11 * kMiB);  // the slot has 9.6 MiB
  EXPECT_THAT(measured().first, AnyOf("fp32", "bf16"));
}

}  // namespace
}  // namespace skytrain::train
