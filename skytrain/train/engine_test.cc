#include "skytrain/train/engine.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "skytrain/base/error.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/loops.h"

namespace skytrain::train {
namespace {

constexpr model::InputShape kInput{1, 12, 12};

recipe::ModelSpec model_spec(const std::string& name) {
  recipe::ModelSpec spec;
  spec.name = name;
  spec.hidden = {16, 8};
  spec.width = 4;
  return spec;
}

recipe::OptimizerSpec optimizer_spec(const std::string& name) {
  recipe::OptimizerSpec spec;
  spec.name = name;
  spec.lr = 0.01;
  if (name == "sgd") spec.momentum = 0.9;
  return spec;
}

Engine::Options options_of(int replicas, at::ScalarType dtype = at::kDouble) {
  Engine::Options options;
  options.replicas = replicas;
  options.dtype = dtype;
  options.input = kInput;
  return options;
}

// A sample is a function of its position alone.
void fill(const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
  const int64_t size = kInput.height * kInput.width;
  for (int64_t i = 0; i < int64_t(slot.count); ++i) {
    const double position = double(slot.epoch * 1000 + slot.begin + i);
    for (int64_t k = 0; k < size; ++k) {
      const double value = std::sin(position * 0.7 + double(k) * (1 + std::fmod(position, 5)) * 0.1);
      if (images.scalar_type() == at::kDouble)
        images.mutable_data_ptr<double>()[i * size + k] = value;
      else
        images.mutable_data_ptr<float>()[i * size + k] = float(value);
    }
    labels.mutable_data_ptr<int64_t>()[i] = int64_t(position) % 5;
  }
}

struct Trace {
  std::vector<double> losses;
  std::vector<at::Tensor> state;
};

Trace train_steps(Engine& engine, const data::Slots& slots, uint64_t from, uint64_t to) {
  Trace trace;
  for (uint64_t step = from; step < to; ++step) {
    const StepResult result = engine.step(slots, step, {.lr = 0.01, .step = step + 1}, fill);
    EXPECT_TRUE(result.finite);
    EXPECT_EQ(result.samples, slots.step_samples(step));
    trace.losses.push_back(result.loss_sum / double(result.samples));
  }
  for (const tensor::NamedTensor& item : engine.state()) trace.state.push_back(item.tensor.clone());
  return trace;
}

class EveryModel : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryModel, AnyNumberOfReplicasSeesTheSameCurve) {
  const auto [model, optimizer] = GetParam();
  const data::Slots slots(/*samples=*/50, /*batch=*/12, /*slot=*/3);  // the last step of an epoch has 2 samples
  Engine one(model_spec(model), optimizer_spec(optimizer), 7, options_of(1));
  const Trace reference = train_steps(one, slots, 0, 12);
  EXPECT_LT(reference.losses.back(), reference.losses.front());
  for (int replicas : {2, 3, 4}) {
    Engine many(model_spec(model), optimizer_spec(optimizer), 7, options_of(replicas));
    const Trace trace = train_steps(many, slots, 0, 12);
    for (size_t i = 0; i < trace.losses.size(); ++i)
      EXPECT_NEAR(trace.losses[i], reference.losses[i], 1e-9) << replicas << " replicas, step " << i;
    for (size_t i = 0; i < trace.state.size(); ++i)
      EXPECT_LT(trace.state[i].sub(reference.state[i]).abs().max().item<double>(), 1e-9) << one.state()[i].name;
  }
}

TEST_P(EveryModel, ARunCutAnywhereAndContinuedHasTheSameBits) {
  const auto [model, optimizer] = GetParam();
  const data::Slots slots(50, 12, 6);
  Engine whole(model_spec(model), optimizer_spec(optimizer), 7, options_of(2, at::kFloat));
  const Trace reference = train_steps(whole, slots, 0, 9);
  for (uint64_t cut : {1, 5, 8}) {
    Engine first(model_spec(model), optimizer_spec(optimizer), 7, options_of(2, at::kFloat));
    const Trace half = train_steps(first, slots, 0, cut);
    Engine second(model_spec(model), optimizer_spec(optimizer), /*seed=*/99, options_of(2, at::kFloat));
    const std::vector<tensor::NamedTensor> state = second.state();
    for (size_t i = 0; i < state.size(); ++i) state[i].tensor.copy_(half.state[i]);
    second.state_restored();
    const Trace rest = train_steps(second, slots, cut, 9);
    for (size_t i = 0; i < state.size(); ++i)
      EXPECT_TRUE(at::equal(rest.state[i], reference.state[i])) << state[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel,
                         testing::Combine(testing::Values("simplecnn", "mlp", "convnet"),
                                          testing::Values("sgd", "adam", "adamw", "lamb")));

TEST(Engine, AStepWithoutFiniteLossOrGradientsChangesNothing) {
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Engine engine(model_spec("convnet"), optimizer_spec("adam"), 7, options_of(2));
    const data::Slots slots(50, 12, 6);
    const Trace before = train_steps(engine, slots, 0, 2);
    const StepResult result =
        engine.step(slots, 2, {.lr = 0.01, .step = 3},
                    [&](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
                      fill(slot, images, labels);
                      if (slot.index == 1) images.mutable_data_ptr<double>()[5] = poison;
                    });
    EXPECT_FALSE(result.finite);
    const std::vector<tensor::NamedTensor> after = engine.state();
    for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(at::equal(after[i].tensor, before.state[i])) << after[i].name;
  }
}

TEST(Engine, AnExceptionOfOneReplicaReachesTheCallerAndTheEngineGoesOn) {
  Engine engine(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(3));
  const data::Slots slots(50, 12, 4);
  EXPECT_THROW(engine.step(slots, 0, {.lr = 0.01, .step = 1},
                           [](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
                             if (slot.index == 2) throw std::runtime_error("broken sample");
                             fill(slot, images, labels);
                           }),
               std::runtime_error);
  Engine fresh(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(3));
  EXPECT_EQ(train_steps(engine, slots, 0, 3).losses, train_steps(fresh, slots, 0, 3).losses);
}

// An allocation was refused and the refusal dealt with; the next error, of any kind, was then taken for that refusal.
TEST(Engine, AnEarlierOutOfMemoryIsNotTheNextError) {
  tensor::install_memory_budget();
  Engine engine(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(1));
  const data::Slots slots(50, 12, 4);
  const auto refuse_and_forget = [] { EXPECT_THROW(at::empty({int64_t(1) << 50}, at::kByte), tensor::OutOfMemory); };
  refuse_and_forget();
  EXPECT_THROW(engine.step(slots, 0, {.lr = 0.01, .step = 1},
                           [](const data::Slot&, const at::Tensor&, const at::Tensor&) {
                             throw std::runtime_error("broken sample");
                           }),
               std::runtime_error);
  refuse_and_forget();
  EXPECT_THROW(engine.for_each_replica([](int) { throw std::runtime_error("broken sample"); }), std::runtime_error);
}

TEST(Engine, ClippingBoundsTheGlobalNorm) {
  Engine::Options options = options_of(2);
  options.clip_norm = 0.01;
  recipe::OptimizerSpec plain = optimizer_spec("sgd");
  plain.momentum = 0;
  Engine engine(model_spec("mlp"), plain, 7, options);
  std::vector<at::Tensor> before;
  for (const tensor::NamedTensor& item : engine.state()) before.push_back(item.tensor.clone());
  const StepResult result = engine.step(data::Slots(50, 12, 6), 0, {.lr = 1, .step = 1}, fill);
  EXPECT_GT(result.gradient_norm, 0.01);
  double squares = 0;  // with lr 1 the change of the weights is the clipped gradient
  for (size_t i = 0; i < before.size(); ++i)
    squares += engine.state()[i].tensor.sub(before[i]).pow(2).sum().item<double>();
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-6);
}

TEST(Engine, ALossBeyondTheLimitChangesNothing) {
  Engine engine(model_spec("convnet"), optimizer_spec("adam"), 7, options_of(3));
  const data::Slots slots(50, 12, 4);
  const Trace before = train_steps(engine, slots, 0, 2);
  const StepResult result = engine.step(slots, 2, {.lr = 0.01, .step = 3, .loss_limit = 1e-9}, fill);
  EXPECT_TRUE(result.over_limit);
  EXPECT_TRUE(result.finite);
  const std::vector<tensor::NamedTensor> after = engine.state();
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(at::equal(after[i].tensor, before.state[i])) << after[i].name;
}

// fp16's scaled gradients overflow where the loss itself is fine: the step is left out, and the scale halved.
TEST(Engine, AnOverflowOfScaledGradientsSkipsTheStepAndLowersTheScale) {
  Engine::Options options = options_of(2, at::kFloat);
  options.precision = Precision::kFp16;
  options.scaler.init_scale = 0x1p30f;
  Engine engine(model_spec("mlp"), optimizer_spec("sgd"), 7, options);
  const data::Slots slots(50, 12, 6);
  std::vector<at::Tensor> before;
  for (const tensor::NamedTensor& item : engine.state()) before.push_back(item.tensor.clone());
  const StepResult first = engine.step(slots, 0, {.lr = 0.01, .step = 1}, fill);
  EXPECT_TRUE(first.overflowed);
  EXPECT_EQ(engine.scaler().scale(), 0x1p29f);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(engine.state()[i].tensor, before[i]));
  bool applied = false;
  for (uint64_t step = 1; step < 40 && !applied; ++step)
    applied = engine.step(slots, step, {.lr = 0.01, .step = 1}, fill).finite;
  EXPECT_TRUE(applied);
  EXPECT_LT(engine.scaler().scale(), 0x1p24f);
}

TEST(Engine, AveragedWeightsAreSeenOnlyWhileAskedFor) {
  Engine::Options options = options_of(2);
  options.ema = 0.9;
  Engine engine(model_spec("mlp"), optimizer_spec("sgd"), 7, options);
  train_steps(engine, data::Slots(50, 12, 6), 0, 5);
  std::map<std::string, at::Tensor> state;
  for (const tensor::NamedTensor& item : engine.state()) state[item.name] = item.tensor.clone();
  {
    const Engine::AveragedWeights averaged(engine);
    for (int replica = 0; replica < 2; ++replica)
      for (const tensor::NamedTensor& parameter : engine.model(replica).parameters())
        EXPECT_TRUE(at::equal(parameter.tensor, state.at("ema." + parameter.name)));
  }
  for (const tensor::NamedTensor& parameter : engine.model(1).parameters()) {
    EXPECT_TRUE(at::equal(parameter.tensor, state.at("model." + parameter.name)));
    EXPECT_FALSE(at::equal(parameter.tensor, state.at("ema." + parameter.name)));
  }
}

TEST(Engine, FrozenParametersStayAndTheOthersDoNot) {
  recipe::OptimizerSpec optimizer = optimizer_spec("adam");
  optimizer.groups = {{.match = "fc1.*", .lr_scale = 0}};
  Engine engine(model_spec("mlp"), optimizer, 7, options_of(2));
  std::map<std::string, at::Tensor> before;
  for (const tensor::NamedTensor& item : engine.state()) before[item.name] = item.tensor.clone();
  train_steps(engine, data::Slots(50, 12, 6), 0, 3);
  for (const tensor::NamedTensor& item : engine.state()) {
    if (!item.name.starts_with("model.")) continue;
    EXPECT_EQ(at::equal(item.tensor, before.at(item.name)), item.name.starts_with("model.fc1.")) << item.name;
  }
}

// Samples that are left out weigh nothing: the step is that of the others alone.
TEST(Engine, AStepWithoutSomeSamplesIsThatOfTheOthers) {
  for (const int replicas : {1, 2}) {
    Engine part(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(replicas));
    Engine whole(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(replicas));
    // Of positions 0..7, those from 2 to 5 stay, in two slots.
    const auto fill_some = [](const data::Slot& slot, at::Tensor& images, at::Tensor& labels) {
      const bool first = slot.begin == 0;
      at::Tensor all = at::empty({4, 1, 12, 12}, at::kDouble), all_labels = at::empty({4}, at::kLong);
      fill(slot, all, all_labels);
      images = all.narrow(0, first ? 2 : 0, 2);
      labels = all_labels.narrow(0, first ? 2 : 0, 2);
    };
    const auto fill_rest = [](const data::Slot& slot, at::Tensor& images, at::Tensor& labels) {
      data::Slot moved = slot;
      moved.begin += 2;
      fill(moved, images, labels);
    };
    const StepResult found = part.step(data::Slots(8, 8, 4), 0, {.lr = 0.1, .step = 1}, fill_some);
    const StepResult expected = whole.step(data::Slots(4, 4, 2), 0, {.lr = 0.1, .step = 1}, fill_rest);
    EXPECT_EQ(found.samples, 4u);
    EXPECT_DOUBLE_EQ(found.loss_sum, expected.loss_sum);
    for (size_t i = 0; i < part.state().size(); ++i)
      EXPECT_TRUE(at::allclose(part.state()[i].tensor, whole.state()[i].tensor, 1e-12, 1e-14)) << i;
  }
}

TEST(Engine, AStepOfNoSamplesChangesNothing) {
  Engine engine(model_spec("convnet"), optimizer_spec("sgd"), 7, options_of(2));
  std::vector<at::Tensor> before;
  for (const tensor::NamedTensor& item : engine.state()) before.push_back(item.tensor.clone());
  const auto fill_none = [](const data::Slot&, at::Tensor& images, at::Tensor& labels) {
    images = images.narrow(0, 0, 0);
    labels = labels.narrow(0, 0, 0);
  };
  const StepResult result = engine.step(data::Slots(8, 8, 4), 0, {.lr = 0.1, .step = 1}, fill_none);
  EXPECT_EQ(result.samples, 0u);
  EXPECT_TRUE(result.finite);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(engine.state()[i].tensor, before[i])) << i;
  EXPECT_TRUE(engine.step(data::Slots(8, 8, 4), 1, {.lr = 0.1, .step = 1}, fill).finite);
}

TEST(Engine, AGroupThatMatchesNothingIsRefused) {
  recipe::OptimizerSpec optimizer = optimizer_spec("adam");
  for (const auto& [pattern, message] : {std::pair{"layer9.*", "matches no parameter of the model"},
                                         {"fc1.weight", "an earlier group holds for every parameter that it matches"},
                                         {"*", "leaves nothing to train"}}) {
    optimizer.groups = {{.match = "fc1.*", .lr_scale = 0}, {.match = pattern, .lr_scale = 0}};
    try {
      const Engine engine(model_spec("mlp"), optimizer, 7, options_of(1));
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      EXPECT_NE(error.message().find(message), std::string::npos) << error.message();
    }
  }
}

// Weight decay that was asked for norms and biases did nothing beside no_decay: true.
TEST(Engine, ADecayThatNoDecayTakesAwayIsRefused) {
  recipe::OptimizerSpec optimizer = optimizer_spec("adamw");
  optimizer.no_decay = true;
  const auto refused = [&](const std::vector<recipe::ParameterGroupSpec>& groups) {
    optimizer.groups = groups;
    try {
      Engine(model_spec("mlp"), optimizer, 7, options_of(1));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
      EXPECT_NE(error.message().find("its weight_decay is without effect"), std::string::npos) << error.message();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused({{.match = "*.bias", .weight_decay = 0.1}}));
  EXPECT_TRUE(refused({{.match = "fc1.weight", .lr_scale = 0.5}, {.match = "fc1.*", .weight_decay = 0.1}}))
      << "what could decay is of another group";
  EXPECT_FALSE(refused({{.match = "*.bias", .weight_decay = 0}}));
  EXPECT_FALSE(refused({{.match = "fc1.*", .weight_decay = 0.1}}));
  optimizer.no_decay = false;
  EXPECT_FALSE(refused({{.match = "*.bias", .weight_decay = 0.1}}));
}

TEST(CutParameters, PartsCoverEveryElementOnceOnCacheLines) {
  Engine engine(model_spec("mlp"), optimizer_spec("sgd"), 7, options_of(1));
  for (int parts = 1; parts <= 9; ++parts) {
    std::vector<int64_t> next(engine.model().parameters().size(), 0);
    for (const auto& part : cut_parameters(engine.model().parameters(), parts))
      for (const ParameterSlice& slice : part) {
        EXPECT_EQ(slice.begin, next[slice.parameter]);
        EXPECT_EQ(slice.begin % 16, 0);
        next[slice.parameter] = slice.end;
      }
    for (size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i], engine.model().parameters()[i].tensor.numel());
  }
}

TEST(AddAndCheck, FindsASingleBadValueAnywhere) {
  for (const int64_t size : {1, 31, 32, 33, 1000})
    for (int64_t bad = 0; bad < size; bad += 7) {
      std::vector<float> a(size, 1e30f), b(size, 2), c(size, 3);
      const float* more[] = {b.data(), c.data()};
      EXPECT_TRUE(add_and_check(a.data(), more, size));
      EXPECT_EQ(a[bad], 1e30f + 2 + 3);
      b[bad] = std::numeric_limits<float>::infinity();
      EXPECT_FALSE(add_and_check(a.data(), more, size));
    }
}

}  // namespace
}  // namespace skytrain::train
