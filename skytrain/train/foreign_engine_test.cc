// Engines that train models of others, as TorchScript.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/csrc/jit/api/module.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "skytrain/base/error.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/state_snapshot.h"

namespace skytrain::train {
namespace {

constexpr model::InputShape kInput{2, 6, 6};
constexpr int64_t kClasses = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// conv 3x3 -> relu -> dropout -> linear, with a mask among its buffers.
constexpr char kForward[] = R"(
def forward(self, x):
    h = torch.relu(torch.conv2d(x, self.weight)).flatten(1)
    h = torch.dropout(h, self.rate, self.training)
    return torch.linear(h, self.head) + self.mask.exp()
)";

at::Tensor values(at::IntArrayRef shape) {
  return at::zeros(shape, at::kFloat).uniform_(-0.3, 0.3, at::detail::createCPUGenerator(3));
}

class ForeignEngineTest : public testing::Test {
 protected:
  ForeignEngineTest() {
    char name[] = "/tmp/skytrain-train-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ForeignEngineTest() override { std::filesystem::remove_all(folder_); }

  // change: what becomes of the convolution's weight before it is saved.
  void save_module(double dropout, const std::function<at::Tensor(const at::Tensor&)>& change = nullptr) const {
    torch::jit::Module module("Net");
    const at::Tensor weight = values({4, 2, 3, 3});
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_attribute("rate", c10::FloatType::get(), dropout);
    module.register_parameter("weight", (change ? change(weight) : weight).set_requires_grad(true), false);
    module.register_parameter("head", values({kClasses, 4 * 16}).set_requires_grad(true), false);
    module.register_buffer("mask", at::full({kClasses}, -kInfinity, at::kFloat));
    module.define(kForward);
    module.save(path());
  }

  std::unique_ptr<Engine> engine(uint64_t seed = 7, int replicas = 1) const {
    recipe::ModelSpec model;
    model.name = "torchscript";
    model.path = path();
    model.classes = kClasses;
    recipe::OptimizerSpec optimizer;
    optimizer.name = "adam";
    optimizer.lr = 0.01;
    Engine::Options options;
    options.replicas = replicas;
    options.input = kInput;
    return std::make_unique<Engine>(model, optimizer, seed, options);
  }

  std::string path() const { return folder_ + "/net.pt"; }

 private:
  std::string folder_;
};

void fill(const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
  const int64_t size = kInput.channels * kInput.height * kInput.width;
  for (int64_t i = 0; i < int64_t(slot.count); ++i) {
    const double position = double(slot.epoch * 1000 + slot.begin + i);
    for (int64_t k = 0; k < size; ++k)
      images.mutable_data_ptr<float>()[i * size + k] = float(std::sin(position * 0.7 + double(k) * 0.3));
    labels.mutable_data_ptr<int64_t>()[i] = int64_t(position) % kClasses;
  }
}

std::vector<at::Tensor> train_steps(Engine& engine, uint64_t from, uint64_t to) {
  const data::Slots slots(/*samples=*/20, /*batch=*/8, /*slot=*/4);
  for (uint64_t step = from; step < to; ++step)
    EXPECT_TRUE(engine.step(slots, step, {.lr = 0.01, .step = step + 1}, fill).finite);
  std::vector<at::Tensor> state;
  for (const tensor::NamedTensor& item : engine.state()) state.push_back(item.tensor.clone());
  return state;
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

// Dropout of a module draws from the process's generator: a resumed run went another way than one that was not cut.
TEST_F(ForeignEngineTest, DropoutIsAFunctionOfTheSeedAndThePlaceInTheRun) {
  save_module(/*dropout=*/0.5);
  const auto whole = engine(), again = engine(), other = engine(/*seed=*/8);
  const std::vector<at::Tensor> reference = train_steps(*whole, 0, 5);
  expect_equal(train_steps(*again, 0, 5), reference);
  EXPECT_FALSE(at::equal(train_steps(*other, 0, 5)[0], reference[0])) << "the weights are those of the file";

  const auto first = engine(), second = engine();
  const std::vector<at::Tensor> half = train_steps(*first, 0, 2);
  const std::vector<tensor::NamedTensor> state = second->state();
  for (size_t i = 0; i < state.size(); ++i) state[i].tensor.copy_(half[i]);
  second->state_restored();
  expect_equal(train_steps(*second, 2, 5), reference);
}

TEST_F(ForeignEngineTest, DropoutDiffersBetweenSteps) {
  save_module(/*dropout=*/0.5);
  const auto at_first = engine(), at_fourth = engine();  // steps of the same samples but for the epoch
  const data::Slots slots(/*samples=*/8, /*batch=*/8, /*slot=*/8);
  const auto same_samples = [](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
    fill({.epoch = 0, .begin = slot.begin, .count = slot.count, .index = slot.index}, images, labels);
  };
  const double a = at_first->step(slots, 0, {.lr = 0.01, .step = 1}, same_samples).loss_sum;
  const double b = at_fourth->step(slots, 3, {.lr = 0.01, .step = 1}, same_samples).loss_sum;
  EXPECT_NE(a, b);
}

// Whether a save would take the engine's state for finite.
bool finite(const Engine& engine) {
  const std::vector<tensor::NamedTensor> tensors = engine.state();
  checkpoint::FileImage image;
  copy_state(tensors, /*step=*/1, image);
  return not_finite(arrays_to_check(tensors, engine), image).empty();
}

// An attention mask among the buffers ended the run as if it had diverged.
TEST_F(ForeignEngineTest, AMaskOfInfinitiesIsNoDivergence) {
  save_module(/*dropout=*/0);
  for (const int replicas : {1, 2}) {
    const auto trained = engine(7, replicas);
    train_steps(*trained, 0, 3);
    EXPECT_EQ(trained->model().buffers()[0].tensor.min().item<double>(), -kInfinity);
    EXPECT_EQ(trained->model().buffers()[0].tensor.max().item<double>(), -kInfinity);
    EXPECT_TRUE(finite(*trained));
  }
}

TEST_F(ForeignEngineTest, InfinitiesElsewhereAre) {
  save_module(/*dropout=*/0);
  const auto trained = engine();
  train_steps(*trained, 0, 1);
  for (const tensor::NamedTensor& item : trained->state()) {
    if (item.name == "model.mask") continue;
    const at::Tensor before = item.tensor.clone();
    item.tensor.fill_(kInfinity);
    EXPECT_FALSE(finite(*trained)) << item.name;
    item.tensor.copy_(before);
  }
  EXPECT_TRUE(finite(*trained));
}

// A module that was saved in channels_last could not be trained.
TEST_F(ForeignEngineTest, AnOrderOfDimensionsInMemoryIsNoOtherTraining) {
  save_module(/*dropout=*/0);
  const auto contiguous = engine();
  const std::vector<at::Tensor> reference = train_steps(*contiguous, 0, 6);
  save_module(/*dropout=*/0,
              [](const at::Tensor& weight) { return weight.contiguous(at::MemoryFormat::ChannelsLast); });
  for (const int replicas : {1, 2}) {
    const auto channels_last = engine(7, replicas);
    ASSERT_FALSE(channels_last->model().parameters()[0].tensor.is_contiguous());
    const std::vector<at::Tensor> state = train_steps(*channels_last, 0, 6);
    ASSERT_EQ(state.size(), reference.size());
    for (size_t i = 0; i < state.size(); ++i) {
      EXPECT_TRUE(at::allclose(state[i], reference[i], 1e-4, 1e-5)) << channels_last->state()[i].name;
    }
  }
}

// Elements that share their memory would be stepped several times.
TEST_F(ForeignEngineTest, OverlappingParametersAreRefusedByName) {
  for (const auto& change : {+[](const at::Tensor& weight) {
                               return weight.narrow(0, 0, 1).expand({4, 2, 3, 3});
                             },
                             +[](const at::Tensor& weight) {
                               return weight.repeat({1, 2, 1, 1}).narrow(1, 0, 2);
                             }}) {
    save_module(/*dropout=*/0, [&](const at::Tensor& weight) { return change(weight).detach(); });
    try {
      engine();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      EXPECT_THAT(error.message(), testing::HasSubstr("parameter \"weight\" of the module shares its memory"));
    }
  }
}

}  // namespace
}  // namespace skytrain::train
