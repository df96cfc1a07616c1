// Parity with Python PyTorch: the goldens say what torch.optim, torch.nn and lr_scheduler computed from the same
// weights and pictures (make_goldens.py, which also defines the hash that both sides draw them from).
//
// Tolerances: 1e-5 after one step in fp32, 1e-9 after 50 steps in fp64. Python's own results move by 3e-7 and 1e-14
// between one and two threads and between AVX-512 and plain SSE, so there is room for another order of summation and
// none for another formula.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "goldens.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/schedule.h"

namespace skytrain {
namespace {

using tensor::NamedTensor;

using parity::fill_weights;

const parity::Goldens& goldens() {
  static const parity::Goldens goldens("goldens.safetensors");
  return goldens;
}

struct Subject {
  std::string name;
  recipe::ModelSpec spec;
  model::InputShape input;
  int64_t signal_quarters = 0;

  explicit Subject(const std::string& model_name) : name(model_name) {
    const Json& cases = goldens().cases();
    const Json& golden = cases.at("models").at(name);
    spec.name = name;
    spec.classes = golden.at("classes");
    spec.hidden = golden.value("hidden", spec.hidden);
    spec.width = golden.value("width_of_first_block", spec.width);
    input = {golden.at("channels"), golden.at("height"), golden.at("width")};
    signal_quarters = cases.at("signal_quarters").at(std::to_string(input.channels));
  }
};

recipe::OptimizerSpec optimizer_spec(const std::string& name) {
  return parity::optimizer_spec(goldens().cases().at("optimizers").at(name));
}

// Sample `sample` of the endless stream of pictures.
void fill_sample(const Subject& subject, uint64_t sample, int64_t row, const at::Tensor& images,
                 const at::Tensor& labels) {
  labels.mutable_data_ptr<int64_t>()[row] = parity::label_of(sample, uint64_t(subject.spec.classes));
  parity::fill_picture(sample, uint64_t(subject.spec.classes), uint64_t(subject.signal_quarters), images[row]);
}

train::FillSlot fill_slots(const Subject& subject) {
  return [&subject](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
    for (uint64_t i = 0; i < slot.count; ++i) fill_sample(subject, slot.begin + i, int64_t(i), images, labels);
  };
}

std::vector<double> sampled(const at::Tensor& tensor) {
  return parity::sampled(tensor, goldens().cases().at("sample"));
}

void expect_close(const std::vector<double>& ours, const std::string& key, double tolerance) {
  parity::expect_close(ours, goldens()[key], key, tolerance);
}

void expect_state(const train::Engine& engine, const std::string& prefix, double tolerance) {
  std::map<std::string, at::Tensor> state;
  for (const NamedTensor& item : engine.state())
    if (item.name.starts_with("model.")) state[item.name.substr(6)] = item.tensor;
  const std::vector<std::string> keys = goldens().with_prefix(prefix + "/state/");
  ASSERT_EQ(keys.size(), state.size()) << prefix;
  for (const std::string& key : keys) {
    const std::string name = key.substr(prefix.size() + 7);
    ASSERT_TRUE(state.contains(name)) << "Python has a tensor " << name;
    expect_close(sampled(state[name]), key, tolerance);
  }
}

std::unique_ptr<train::Engine> make_engine(const Subject& subject, const std::string& optimizer,
                                           train::Engine::Options options) {
  options.input = subject.input;
  auto engine = std::make_unique<train::Engine>(subject.spec, optimizer_spec(optimizer), /*seed=*/0, options);
  fill_weights(engine->model().parameters());
  return engine;
}

uint64_t count(const char* key) { return goldens().cases().at(key).get<uint64_t>(); }

class Parity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const Subject subject{std::get<0>(GetParam())};
  const std::string optimizer = std::get<1>(GetParam());
  const uint64_t batch = count("batch"), steps = count("steps");
  // One epoch that never ends: position p of it is sample p.
  data::Slots slots(uint64_t slot) const { return data::Slots(batch * (steps + 1), batch, slot); }
};

TEST_P(Parity, OneStepInFp32) {
  const std::string prefix = "one/" + subject.name + "/" + optimizer;
  // The gradients, straight from the model: an optimizer like Adam hides their scale.
  const auto model = model::build_model(subject.spec, subject.input, at::detail::createCPUGenerator(0));
  fill_weights(model->parameters());
  const at::Tensor images =
      at::empty({int64_t(batch), subject.input.channels, subject.input.height, subject.input.width}, at::kFloat);
  const at::Tensor labels = at::empty({int64_t(batch)}, at::kLong);
  for (uint64_t i = 0; i < batch; ++i) fill_sample(subject, i, int64_t(i), images, labels);
  const at::Tensor loss = at::cross_entropy_loss(model->forward(images), labels);
  loss.backward();
  expect_close({loss.item<double>()}, prefix + "/loss", 1e-5);
  for (const NamedTensor& parameter : model->parameters())
    expect_close(sampled(parameter.tensor.grad()), prefix + "/gradient/" + parameter.name, 1e-5);

  const auto engine = make_engine(subject, optimizer, {});
  const train::StepResult result =
      engine->step(slots(batch), 0, {.lr = optimizer_spec(optimizer).lr, .step = 1}, fill_slots(subject));
  expect_close({result.loss_sum / double(result.samples)}, prefix + "/loss", 1e-5);
  expect_state(*engine, prefix, 1e-5);
}

TEST_P(Parity, FiftyStepsInFp64UnderEachSchedule) {
  const double lr = optimizer_spec(optimizer).lr;
  for (const auto& [schedule_name, golden] : goldens().cases().at("schedules").items()) {
    const std::string prefix = "fifty/" + subject.name + "/" + optimizer + "/" + schedule_name;
    recipe::ScheduleSpec spec;
    spec.name = golden.at("name");
    spec.warmup = {golden.at("warmup"), recipe::Duration::Unit::kSteps};
    spec.min_lr = golden.at("min_lr_factor").get<double>() * lr;
    const train::Schedule schedule(spec, lr, batch, batch * steps, batch * steps);
    const auto engine = make_engine(subject, optimizer, {.dtype = at::kDouble});
    std::vector<double> losses, rates;
    for (uint64_t step = 0; step < steps; ++step) {
      rates.push_back(schedule.rate(step * batch));
      const train::StepResult result =
          engine->step(slots(batch), step, {.lr = rates.back(), .step = step + 1}, fill_slots(subject));
      losses.push_back(result.loss_sum / double(result.samples));
    }
    expect_close(rates, prefix + "/lr", 1e-12 * lr);
    expect_close(losses, prefix + "/loss", 1e-9);
    expect_state(*engine, prefix, 1e-9);
  }
}

// Slots of 3, 3 and 2 samples on 1, 2 and 4 replicas (the fourth has nothing to do), with clipping.
TEST_P(Parity, FiftySlottedStepsInFp64OnAnyNumberOfReplicas) {
  const std::string prefix = "slots/" + subject.name + "/" + optimizer;
  for (const int replicas : {1, 2, 4}) {
    SCOPED_TRACE(testing::Message() << replicas << " replicas");
    const auto engine = make_engine(
        subject, optimizer,
        {.replicas = replicas, .clip_norm = goldens().cases().at("clip_norm").at(subject.name), .dtype = at::kDouble});
    std::vector<double> losses, norms;
    for (uint64_t step = 0; step < steps; ++step) {
      const train::StepResult result = engine->step(
          slots(count("slot")), step, {.lr = optimizer_spec(optimizer).lr, .step = step + 1}, fill_slots(subject));
      losses.push_back(result.loss_sum / double(result.samples));
      norms.push_back(result.gradient_norm);
    }
    expect_close(losses, prefix + "/loss", 1e-9);
    expect_close(norms, prefix + "/norm", 1e-8);  // norms are around 10
    expect_state(*engine, prefix, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Combine(testing::Values("simplecnn", "mlp", "convnet"),
                                          testing::Values("sgd", "sgd_plain", "sgd_nesterov_decay", "adam",
                                                          "adam_decay")),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

TEST(Schedules, AreThoseOfLrScheduler) {
  int cases = 0;
  for (const std::string& key : goldens().with_prefix("schedule/")) {
    char name[16];
    unsigned long long total = 0, warmup = 0;
    double floor = 0;
    ASSERT_EQ(std::sscanf(key.c_str(), "schedule/%15[a-z]_%llu_%llu_%lf", name, &total, &warmup, &floor), 4) << key;
    const double base = 0.05;
    for (const uint64_t batch : {1, 64}) {
      recipe::ScheduleSpec spec;
      spec.name = name;
      spec.warmup = {double(warmup), recipe::Duration::Unit::kSteps};
      spec.min_lr = floor * base;
      const train::Schedule schedule(spec, base, batch, batch * total, batch * total);
      std::vector<double> rates;
      for (uint64_t step = 0; step < total; ++step) rates.push_back(schedule.rate(step * batch));
      expect_close(rates, key, 1e-12 * base);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 24);
}

class Initialisation : public testing::TestWithParam<std::string> {};

// 1e-6 and not 0: the uniform distribution rounds differently with and without AVX.
TEST_P(Initialisation, DrawsTheWeightsOfTorchManualSeed) {
  const Subject subject(GetParam());
  const auto model =
      model::build_model(subject.spec, subject.input, at::detail::createCPUGenerator(count("init_seed")));
  size_t compared = 0;
  for (const auto* tensors : {&model->parameters(), &model->buffers()})
    for (const NamedTensor& item : *tensors) {
      expect_close(sampled(item.tensor), "init/" + subject.name + "/" + item.name, 1e-6);
      ++compared;
    }
  EXPECT_EQ(compared, goldens().with_prefix("init/" + subject.name + "/").size());
}

// Another seed has other weights of the same spread.
TEST_P(Initialisation, KeepsTheBoundsOfPyTorchForAnySeed) {
  const Subject subject(GetParam());
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto model = model::build_model(subject.spec, subject.input, at::detail::createCPUGenerator(seed));
    for (const NamedTensor& parameter : model->parameters()) {
      const std::vector<double> golden = goldens()["spread/" + subject.name + "/" + parameter.name];
      const double bound = golden[0], spread = golden[2];
      const at::Tensor values = parameter.tensor.detach().to(at::kDouble);
      EXPECT_LE(values.abs().max().item<double>(), bound * 1.02) << parameter.name;
      if (spread == 0 || values.numel() < 100) continue;
      const double error = spread / std::sqrt(double(values.numel()));
      EXPECT_LE(std::abs(values.mean().item<double>()), 5 * error) << parameter.name;
      EXPECT_NEAR(values.std().item<double>(), spread, 5 * error) << parameter.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Initialisation, testing::Values("simplecnn", "mlp", "convnet"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace skytrain
