#include "skytrain/model/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/model/model_test_data.h"
#include "skytrain/tensor/memory_budget.h"

namespace skytrain::model {
namespace {

// Two slots of one step: their gradients add up. The backward pass runs outside of autocast, as PyTorch advises.
void run_slots(Model& model, const InputShape& input, uint64_t seed, bool autocast) {
  const OneThread one_thread;
  for (const uint64_t slot : {seed, seed + 1}) {
    at::Tensor loss;
    {
      const Autocast scope(autocast);
      loss = loss_of(model, random_images(4, input, slot), 10);
    }
    loss.backward();
  }
}

void expect_same_state(Model& plain, Model& saving) {
  const auto expected = copies(plain.parameters(), /*gradients=*/true), gradients = copies(saving.parameters(), true);
  for (size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(same_bits(gradients[i], expected[i])) << "gradient of " << plain.parameters()[i].name;
  for (size_t i = 0; i < plain.buffers().size(); ++i)
    EXPECT_TRUE(same_bits(saving.buffers()[i].tensor, plain.buffers()[i].tensor)) << plain.buffers()[i].name;
}

struct Case {
  std::string model;
  bool autocast;
};

recipe::ModelSpec large_stem(const std::string& name) {
  recipe::ModelSpec spec = spec_of(name);
  spec.stem = "imagenet";
  return spec;
}

class Checkpointing : public testing::TestWithParam<Case> {
 protected:
  const InputShape input_{3, 32, 32};
};

TEST_P(Checkpointing, ChangesNoBitOfGradientsAndBuffers) {
  const auto plain = build(large_stem(GetParam().model), input_), saving = build(large_stem(GetParam().model), input_);
  saving->set_activation_checkpointing(true);
  run_slots(*plain, input_, 1, GetParam().autocast);
  run_slots(*saving, input_, 1, GetParam().autocast);
  expect_same_state(*plain, *saving);
  EXPECT_EQ(plain->buffers().back().tensor.item<int64_t>(), 2) << "batches, each counted once";
}

TEST_P(Checkpointing, ChangesNoBitOnReplicasThatRunAtOnce) {
  constexpr int kReplicas = 2;
  std::vector<std::unique_ptr<Model>> plain, saving;
  for (auto* models : {&plain, &saving})
    for (int i = 0; i < kReplicas; ++i) {
      const at::Generator generator = i == 0 ? at::detail::createCPUGenerator(7) : at::Generator();
      models->push_back(build_model(large_stem(GetParam().model), input_, generator));
      if (i > 0) share_parameters(*models->front(), *models->back());
    }
  for (int i = 0; i < kReplicas; ++i) run_slots(*plain[i], input_, 10 * i, GetParam().autocast);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReplicas; ++i) {
    saving[i]->set_activation_checkpointing(true);
    threads.emplace_back([&, i] { run_slots(*saving[i], input_, 10 * i, GetParam().autocast); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kReplicas; ++i) expect_same_state(*plain[i], *saving[i]);
}

INSTANTIATE_TEST_SUITE_P(Models, Checkpointing,
                         testing::Values(Case{"resnet18", false}, Case{"resnet18", true}, Case{"resnet50", false},
                                         Case{"resnet50", true}, Case{"convnet", false}, Case{"convnet", true}),
                         [](const auto& test) { return test.param.model + (test.param.autocast ? "_bf16" : "_fp32"); });

// Without checkpointing, what is kept between the two passes is activations; the gradients are there before.
TEST(Checkpointing, Resnet50AtSixtyFourPixelsNeedsAThirdLessMemory) {
  tensor::install_memory_budget();
  const InputShape input{3, 64, 64};
  const OneThread one_thread;
  const auto model = build(large_stem("resnet50"), input);
  const at::Tensor images = random_images(8, input, 1);
  const auto peak = [&](bool on) {
    model->set_activation_checkpointing(on);
    const uint64_t before = tensor::memory_use().live;
    tensor::reset_peak_memory();
    loss_of(*model, images, 10).backward();
    return double(tensor::memory_use().peak - before);
  };
  peak(false);  // allocates the gradients
  const double plain = peak(false), saving = peak(true);
  RecordProperty("plain_mib", int(plain / (1 << 20)));
  RecordProperty("checkpointed_mib", int(saving / (1 << 20)));
  EXPECT_LT(saving, 0.7 * plain) << plain / (1 << 20) << " MiB, then " << saving / (1 << 20);
  EXPECT_GT(plain, 30 << 20);
}

TEST(Checkpointing, RefusesModelsWithoutBlocks) {
  const auto model = build(spec_of("mlp"), {1, 4, 4});
  EXPECT_NO_THROW(model->set_activation_checkpointing(false));
  EXPECT_THROW(model->set_activation_checkpointing(true), Error);
  EXPECT_FALSE(model->activation_checkpointing());
}

at::Tensor leaf(at::IntArrayRef shape, uint64_t seed) {
  return at::empty(shape, at::kFloat).uniform_(-1, 1, at::detail::createCPUGenerator(seed)).set_requires_grad(true);
}

TEST(RunCheckpointed, GivesGradientsToWhoeverAsks) {
  const at::Tensor x = leaf({4, 8}, 1), w = leaf({8, 8}, 2);
  const Block block = [&w](const at::Tensor& y) { return at::linear(y, w).tanh(); };
  const auto plain = torch::autograd::grad({block(x).sum()}, {x, w});
  const auto saving = torch::autograd::grad({run_checkpointed(block, x, {w}).sum()}, {x, w});
  EXPECT_TRUE(same_bits(plain[0], saving[0]));
  EXPECT_TRUE(same_bits(plain[1], saving[1]));
  EXPECT_FALSE(w.grad().defined()) << "nothing may be left in .grad by the second run";
  const auto only_w = torch::autograd::grad({run_checkpointed(block, x.detach(), {w}).sum()}, {w});
  EXPECT_TRUE(same_bits(plain[1], only_w[0]));
}

// A parameter that is used outside of the block too, within one autocast region that includes the backward pass: the
// casts that autocast keeps must have gradients.
TEST(RunCheckpointed, DisturbsNoCastsOfOthers) {
  const at::Tensor x = leaf({4, 8}, 1), w = leaf({8, 8}, 2);
  const Block block = [&w](const at::Tensor& y) { return at::linear(y, w).tanh(); };
  const auto gradient = [&](bool checkpointed) {
    const Autocast autocast(true);
    const at::Tensor y = checkpointed ? run_checkpointed(block, x, {w}) : block(x);
    return torch::autograd::grad({at::linear(y, w).to(at::kFloat).sum()}, {w})[0];
  };
  const at::Tensor plain = gradient(false), saving = gradient(true);
  EXPECT_GT(plain.abs().sum().item<double>(), 0);
  EXPECT_LT(plain.sub(saving).abs().max().item<double>(), 0.05) << "two bfloat16 gradients, added in another precision";
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(RunCheckpointed, DrawsTheSameNumbersTwice) {
  const at::Tensor x = leaf({64, 8}, 1), w = leaf({8, 8}, 2);
  const auto gradients = [&](bool checkpointed) {
    at::Generator generator = at::detail::createCPUGenerator(5);
    const Block block = [&](const at::Tensor& y) {
      const at::Tensor z = at::linear(y, w);
      return z.mul(at::bernoulli(at::empty_like(z).fill_(0.5), generator));
    };
    const at::Tensor y = checkpointed ? run_checkpointed(block, x, {w}, generator) : block(x);
    const at::Tensor after = at::empty({4}, at::kFloat).uniform_(0, 1, generator);
    auto found = torch::autograd::grad({y.sum()}, {x, w});
    found.push_back(after);
    found.push_back(at::empty({4}, at::kFloat).uniform_(0, 1, generator));  // the second run put the state back
    return found;
  };
  const auto plain = gradients(false), saving = gradients(true);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same_bits(plain[i], saving[i])) << i;
}

TEST(RunCheckpointed, KnowsItsSecondRun) {
  const at::Tensor x = leaf({2, 2}, 1);
  std::vector<bool> runs;
  const Block block = [&](const at::Tensor& y) {
    runs.push_back(is_recomputing());
    return y.mul(2);
  };
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(run_checkpointed(block, x, {}).requires_grad());
  }
  run_checkpointed(block, x, {}).sum().backward();
  EXPECT_EQ(runs, std::vector({false, false, true}));
  EXPECT_FALSE(is_recomputing());
}

TEST(RunCheckpointed, LeavesNoTraceOfASecondRunThatThrows) {
  const at::Tensor x = leaf({2, 2}, 1);
  const Block block = [&](const at::Tensor& y) {
    if (is_recomputing()) throw Error(ErrorKind::kInternal, "", "no second time");
    return y.mul(2);
  };
  const at::Tensor y = run_checkpointed(block, x, {}).sum();
  EXPECT_THROW(y.backward(), Error);
  EXPECT_FALSE(is_recomputing());
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_TRUE(at::GradMode::is_enabled());
}

}  // namespace
}  // namespace skytrain::model
