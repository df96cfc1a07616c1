// Parity of ResNets with torchvision's (golden/resnet.py): names and shapes, initial weights for a seed, logits,
// gradients and running statistics, all from the same hashed weights and pictures.
//
// Tolerances: 1e-5 for initial weights, because the normal distribution rounds differently with and without AVX; else
// 1e-9, in fp64.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "goldens.h"
#include "skytrain/model/model.h"

namespace skytrain::parity {
namespace {

using tensor::NamedTensor;

const Goldens& goldens() {
  static const Goldens file("goldens_resnet.safetensors");
  return file;
}

class ResNetParity : public testing::TestWithParam<std::string> {
 protected:
  ResNetParity() {
    const Json& golden = goldens().cases().at("models").at(GetParam());
    spec_.name = golden.at("name");
    spec_.stem = golden.at("stem");
    spec_.classes = golden.at("classes");
    input_ = {3, golden.at("height"), golden.at("width")};
    parameters_ = golden.at("parameters");
    state_ = golden.at("state");
    at::set_num_threads(1);
  }
  ~ResNetParity() override { at::set_num_threads(threads_); }

  std::unique_ptr<model::Model> build(uint64_t seed, at::ScalarType dtype) const {
    return model::build_model(spec_, input_, at::detail::createCPUGenerator(seed), dtype);
  }

  // filled() and batch() of golden/resnet.py.
  std::unique_ptr<model::Model> filled() const {
    auto model = build(0, at::kDouble);
    fill_weights(model->parameters());
    const double gain = goldens().cases().at("gain");
    for (const NamedTensor& parameter : model->parameters())
      if (parameter.tensor.dim() > 1) parameter.tensor.detach().mul_(gain);
    uint64_t stream = 2000;
    for (const NamedTensor& buffer : model->buffers()) {
      if (!buffer.tensor.is_floating_point()) continue;
      const bool variance = buffer.name.ends_with("running_var");
      for_each_element(buffer.tensor, [&](int64_t i) {
        const double u = unit(stream, uint64_t(i));
        return variance ? 1.0 + 0.25 * u : 0.125 * u;
      });
      ++stream;
    }
    return model;
  }
  at::Tensor images() const {
    const at::Tensor images = at::empty({count(), 3, input_.height, input_.width}, at::kDouble);
    for_each_element(images, [](int64_t i) { return (double(bits(5, uint64_t(i)) % 256) - 128.0) / 128.0; });
    return images;
  }
  at::Tensor labels() const {
    const at::Tensor labels = at::empty({count()}, at::kLong);
    for (int64_t i = 0; i < count(); ++i)
      labels.mutable_data_ptr<int64_t>()[i] = int64_t(bits(6, uint64_t(i)) % uint64_t(spec_.classes));
    return labels;
  }
  static int64_t count() { return goldens().cases().at("images"); }

  void expect_sampled(const at::Tensor& tensor, const std::string& key, double tolerance) const {
    expect_close(sampled(tensor, goldens().cases().at("sample")), goldens()[key], key, tolerance);
  }
  void expect_all(const at::Tensor& tensor, const std::string& key, double tolerance) const {
    const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
    const double* const values = flat.const_data_ptr<double>();
    expect_close({values, values + flat.numel()}, goldens()[key], key, tolerance);
  }

  void expect_training_pass(model::Model& model) const {
    const std::string prefix = "resnet_train/" + GetParam();
    const at::Tensor logits = model.forward(images());
    expect_all(logits, prefix + "/logits", 1e-9);
    const at::Tensor loss = at::cross_entropy_loss(logits, labels());
    expect_all(loss, prefix + "/loss", 1e-9);
    loss.backward();
    for (const NamedTensor& parameter : model.parameters())
      expect_sampled(parameter.tensor.grad(), prefix + "/gradient/" + parameter.name, 1e-9);
    for (const NamedTensor& buffer : model.buffers())
      expect_sampled(buffer.tensor, prefix + "/buffer/" + buffer.name, 1e-9);
  }

  recipe::ModelSpec spec_;
  model::InputShape input_;
  int64_t parameters_ = 0;
  Json state_;
  const int threads_ = at::get_num_threads();
};

// state_dict() lists a module's parameters, then its buffers; here all parameters come first.
TEST_P(ResNetParity, HasTheStateDictOfTorchvision) {
  const auto model = model::build_model(spec_, input_, at::Generator());
  EXPECT_EQ(model::count_parameters(*model), parameters_);
  std::set<std::string> buffers;
  for (const NamedTensor& buffer : model->buffers()) buffers.insert(buffer.name);
  auto parameter = model->parameters().begin();
  auto buffer = model->buffers().begin();
  for (const Json& entry : state_) {
    const std::string name = entry.at(0);
    const auto& [ours, tensor] = buffers.contains(name) ? *buffer++ : *parameter++;
    EXPECT_EQ(ours, name);
    EXPECT_EQ(tensor.sizes().vec(), entry.at(1).get<std::vector<int64_t>>()) << name;
  }
  EXPECT_TRUE(parameter == model->parameters().end() && buffer == model->buffers().end());
}

TEST_P(ResNetParity, DrawsTheWeightsOfTorchManualSeed) {
  const auto model = build(goldens().cases().at("init_seed"), at::kFloat);
  const std::string prefix = "resnet_init/" + GetParam() + "/";
  for (const NamedTensor& parameter : model->parameters())
    expect_sampled(parameter.tensor, prefix + parameter.name, 1e-5);
  EXPECT_EQ(model->parameters().size(), goldens().with_prefix(prefix).size());
}

TEST_P(ResNetParity, EvaluatesToTheSameLogits) {
  const at::NoGradGuard no_grad;
  const auto model = filled();
  model->set_training(false);
  expect_all(model->forward(images()), "resnet_eval/" + GetParam() + "/logits", 1e-9);
}

TEST_P(ResNetParity, TrainsToTheSameGradientsAndStatistics) {
  const auto model = filled();
  expect_training_pass(*model);
}

TEST_P(ResNetParity, DoesSoWithActivationCheckpointing) {
  const auto model = filled();
  model->set_activation_checkpointing(true);
  expect_training_pass(*model);
}

INSTANTIATE_TEST_SUITE_P(Models, ResNetParity, testing::Values("resnet18", "resnet34", "resnet50", "resnet18_cifar"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace skytrain::parity
