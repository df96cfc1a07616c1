#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "skytrain/base/error.h"
#include "skytrain/model/model_test_data.h"

namespace skytrain::model {
namespace {

recipe::ModelSpec imagenet(const std::string& name) {
  recipe::ModelSpec spec = spec_of(name, 1000);
  spec.stem = "imagenet";
  return spec;
}

std::unique_ptr<Model> without_values(const recipe::ModelSpec& spec, const InputShape& input) {
  return build_model(spec, input, at::Generator());
}

// Of torchvision's resnet18, resnet34 and resnet50.
TEST(ResNet, HasAsManyParametersAsTorchvisions) {
  const InputShape pictures{3, 224, 224};
  EXPECT_EQ(count_parameters(*without_values(imagenet("resnet18"), pictures)), 11'689'512);
  EXPECT_EQ(count_parameters(*without_values(imagenet("resnet34"), pictures)), 21'797'672);
  EXPECT_EQ(count_parameters(*without_values(imagenet("resnet50"), pictures)), 25'557'032);
}

TEST(ResNet, RegistersLikeTorchvision) {
  const auto model = without_values(imagenet("resnet50"), {3, 64, 64});
  const std::vector<std::string> parameters = names(model->parameters());
  EXPECT_THAT(
      std::vector(parameters.begin(), parameters.begin() + 18),
      testing::ElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer1.0.bn1.weight",
                           "layer1.0.bn1.bias", "layer1.0.conv2.weight", "layer1.0.bn2.weight", "layer1.0.bn2.bias",
                           "layer1.0.conv3.weight", "layer1.0.bn3.weight", "layer1.0.bn3.bias",
                           "layer1.0.downsample.0.weight", "layer1.0.downsample.1.weight", "layer1.0.downsample.1.bias",
                           "layer1.1.conv1.weight", "layer1.1.bn1.weight", "layer1.1.bn1.bias"));
  EXPECT_THAT(std::vector(parameters.end() - 3, parameters.end()),
              testing::ElementsAre("layer4.2.bn3.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(names(model->buffers()), testing::Contains("layer4.0.downsample.1.num_batches_tracked"));
  EXPECT_EQ(model->buffers().size(), 3u * 53);
}

// A block of resnet18 has a shortcut of its own only where the shape changes: not in the first layer.
TEST(ResNet, HasShortcutsWhereTheShapeChanges) {
  const auto shortcuts = [](const std::string& name) {
    std::vector<std::string> found;
    for (const std::string& parameter : names(without_values(imagenet(name), {3, 64, 64})->parameters()))
      if (parameter.ends_with("downsample.0.weight")) found.push_back(parameter.substr(0, 8));
    return found;
  };
  EXPECT_THAT(shortcuts("resnet18"), testing::ElementsAre("layer2.0", "layer3.0", "layer4.0"));
  EXPECT_THAT(shortcuts("resnet50"), testing::ElementsAre("layer1.0", "layer2.0", "layer3.0", "layer4.0"));
}

// The last layer of a slot of one small picture has one value a channel: its variance is 0/0, which made the running
// variance NaN, and each evaluation after it.
TEST(ResNet, OneValueAChannelLeavesTheStatisticsFinite) {
  const InputShape input{3, 8, 8};
  const auto model = build(spec_of("resnet18"), input);
  for (int i = 0; i < 2; ++i) loss_of(*model, random_images(1, input, 1), 10).backward();
  for (const tensor::NamedTensor& buffer : model->buffers()) {
    const bool last_layer = buffer.name.starts_with("layer4.");
    EXPECT_TRUE(std::isfinite(buffer.tensor.sum().item<double>())) << buffer.name;
    if (buffer.name.ends_with("num_batches_tracked")) {
      EXPECT_EQ(buffer.tensor.item<int64_t>(), last_layer ? 0 : 2) << buffer.name;
    } else if (buffer.name.ends_with("running_var") && last_layer) {
      EXPECT_EQ(buffer.tensor.min().item<double>(), 1) << buffer.name;
    }
  }
  for (const tensor::NamedTensor& parameter : model->parameters())
    EXPECT_TRUE(std::isfinite(parameter.tensor.grad().sum().item<double>())) << parameter.name;
  model->set_training(false);
  EXPECT_TRUE(std::isfinite(model->forward(random_images(2, input, 2)).sum().item<double>()));
}

TEST(ResNet, TakesSmallPicturesWithTheSmallStem) {
  const OneThread one_thread;
  const auto model = build(spec_of("resnet18"), {1, 32, 32});
  EXPECT_EQ(model->parameters()[0].tensor.sizes(), at::IntArrayRef({64, 1, 3, 3}));
  EXPECT_EQ(model->forward(random_images(2, {1, 32, 32}, 1)).sizes(), at::IntArrayRef({2, 10}));
  EXPECT_EQ(model->forward(random_images(3, {1, 8, 8}, 1)).sizes(), at::IntArrayRef({3, 10})) << "any size will do";
}

// kaiming_normal_(mode="fan_out"): a standard deviation of sqrt(2 / (out * k * k)).
TEST(ResNet, DrawsConvolutionsByTheirFanOut) {
  const auto model = build(imagenet("resnet18"), {3, 64, 64});
  for (const tensor::NamedTensor& item : model->parameters()) {
    if (item.tensor.dim() != 4) continue;
    const at::Tensor weight = item.tensor.detach().to(at::kDouble);
    const double expected = std::sqrt(2.0 / double(weight.size(0) * weight.size(2) * weight.size(3)));
    const double error = expected / std::sqrt(2.0 * double(weight.numel()));
    EXPECT_NEAR(weight.std().item<double>(), expected, 5 * error) << item.name;
    EXPECT_NEAR(weight.mean().item<double>(), 0, 5 * expected / std::sqrt(double(weight.numel()))) << item.name;
  }
}

TEST(ResNet, ComputesInDoublePrecisionToo) {
  const OneThread one_thread;
  const InputShape input{3, 16, 16};
  const auto single = build(spec_of("resnet50"), input);
  const auto twice = build(spec_of("resnet50"), input, 7, at::kDouble);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < single->parameters().size(); ++i)
    twice->parameters()[i].tensor.copy_(single->parameters()[i].tensor);
  const at::Tensor images = random_images(4, input, 3);
  const at::Tensor y = single->forward(images), precise = twice->forward(images.to(at::kDouble));
  EXPECT_LT(precise.sub(y).abs().max().item<double>(), 1e-3);
  EXPECT_GT(precise.abs().max().item<double>(), 0.1);
}

TEST(Model, WithoutAGeneratorSharesWhatItIsGiven) {
  const OneThread one_thread;
  const InputShape input{3, 16, 16};
  const auto original = build(spec_of("resnet18"), input);
  const auto replica = without_values(spec_of("resnet18"), input);
  share_parameters(*original, *replica);
  const at::Tensor images = random_images(2, input, 1);
  EXPECT_TRUE(same_bits(original->forward(images), replica->forward(images)));
}

TEST(Model, UnknownNamesAreSuggested) {
  try {
    build(spec_of("resnet81"), {3, 32, 32});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_THAT(error.message(), testing::HasSubstr("did you mean \"resnet18\""));
  }
}

}  // namespace
}  // namespace skytrain::model
