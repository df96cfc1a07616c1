#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <cmath>
#include <optional>

#include "skytrain/base/text.h"
#include "skytrain/model/activation_checkpointing.h"
#include "skytrain/model/layers.h"
#include "skytrain/model/zoo.h"

// Residual networks (He et al., "Deep Residual Learning for Image Recognition", 2015) with the names, the order of
// registration and the initial weights of torchvision/models/resnet.py.

namespace skytrain::model {
namespace {

struct Architecture {
  bool bottleneck = false;
  std::array<int, 4> blocks{};  // of each layer
};

Architecture architecture_of(const std::string& name) {
  if (name == "resnet50") return {true, {3, 4, 6, 3}};
  if (name == "resnet34") return {false, {3, 4, 6, 3}};
  TORCH_INTERNAL_ASSERT(name == "resnet18");
  return {false, {2, 2, 2, 2}};
}

// relu(F(x) + shortcut(x)). F is two 3x3 convolutions, or (bottleneck) 1x1, 3x3, 1x1, each with batch norm, and relu
// between them. The shortcut is x, or a 1x1 convolution with batch norm where the shape changes.
class ResidualBlock {
 public:
  ResidualBlock(LayerBuilder& builder, const std::string& name, int64_t in, int64_t width, int64_t stride,
                bool bottleneck) {
    const int64_t out = bottleneck ? 4 * width : width;
    struct Shape {
      int64_t in, out, kernel, stride;
    };
    const std::vector<Shape> shapes =
        bottleneck ? std::vector<Shape>{{in, width, 1, 1}, {width, width, 3, stride}, {width, out, 1, 1}}
                   : std::vector<Shape>{{in, width, 3, stride}, {width, width, 3, 1}};
    for (const Shape& shape : shapes) {
      const size_t number = convs_.size() + 1;
      convs_.emplace_back(builder, str(name, ".conv", number), shape.in, shape.out, shape.kernel, shape.kernel / 2,
                          /*with_bias=*/false, shape.stride);
      norms_.emplace_back(builder, str(name, ".bn", number), shape.out);
    }
    if (stride == 1 && in == out) return;
    shortcut_.emplace(builder, name + ".downsample.0", in, out, /*kernel=*/1, /*padding=*/0, /*with_bias=*/false,
                      stride);
    shortcut_norm_.emplace(builder, name + ".downsample.1", out);
  }

  at::Tensor operator()(const at::Tensor& x, bool training) const {
    at::Tensor y = x;
    for (size_t i = 0; i < convs_.size(); ++i) {
      y = norms_[i](convs_[i](y), training);
      if (i + 1 < convs_.size()) y.relu_();
    }
    return y.add_(shortcut_ ? (*shortcut_norm_)((*shortcut_)(x), training) : x).relu_();
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < convs_.size(); ++i)
      all.insert(all.end(), {convs_[i].weight, norms_[i].weight, norms_[i].bias});
    if (shortcut_) all.insert(all.end(), {shortcut_->weight, shortcut_norm_->weight, shortcut_norm_->bias});
    return all;
  }

 private:
  std::vector<Conv2d> convs_;
  std::vector<BatchNorm2d> norms_;
  std::optional<Conv2d> shortcut_;
  std::optional<BatchNorm2d> shortcut_norm_;
};

class ResNet final : public Model {
 public:
  ResNet(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator, at::ScalarType dtype)
      : small_stem_(spec.stem == "cifar") {
    const Architecture architecture = architecture_of(spec.name);
    LayerBuilder builder{*this, std::move(generator), dtype};
    int64_t channels = 64;
    conv1_ = small_stem_ ? Conv2d(builder, "conv1", input.channels, channels, /*kernel=*/3, /*padding=*/1,
                                  /*with_bias=*/false)
                         : Conv2d(builder, "conv1", input.channels, channels, /*kernel=*/7, /*padding=*/3,
                                  /*with_bias=*/false, /*stride=*/2);
    bn1_ = BatchNorm2d(builder, "bn1", channels);
    for (size_t layer = 0; layer < architecture.blocks.size(); ++layer) {
      const int64_t width = int64_t(64) << layer;
      for (int i = 0; i < architecture.blocks[layer]; ++i) {
        blocks_.emplace_back(builder, str("layer", layer + 1, ".", i), channels, width,
                             /*stride=*/layer > 0 && i == 0 ? 2 : 1, architecture.bottleneck);
        channels = architecture.bottleneck ? 4 * width : width;
      }
    }
    fc_ = Linear(builder, "fc", channels, spec.classes);
    if (builder.generator.defined()) initialise_convolutions(builder.generator);
  }

  at::Tensor forward(const at::Tensor& images) override {
    const bool with_statistics = training();
    at::Tensor x = run([this, with_statistics](const at::Tensor& y) { return stem(y, with_statistics); }, images,
                       {conv1_.weight, bn1_.weight, bn1_.bias});
    for (const ResidualBlock& block : blocks_)
      x = run([&block, with_statistics](const at::Tensor& y) { return block(y, with_statistics); }, x,
              block.parameters());
    return fc_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  at::Tensor stem(const at::Tensor& images, bool with_statistics) const {
    const at::Tensor x = bn1_(conv1_(images), with_statistics).relu_();
    return small_stem_ ? x : at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  }

  at::Tensor run(const Block& block, const at::Tensor& x, at::TensorList parameters) const {
    return activation_checkpointing() ? run_checkpointed(block, x, parameters) : block(x);
  }

  bool has_blocks() const override { return true; }

  // As torchvision does it: after all layers have drawn their default values, kaiming_normal_(fan_out, relu) for every
  // convolution in the order of modules(), which is that of registration. (torchvision makes a block's shortcut before
  // its other layers, but their default values take as many random numbers in any order, and nothing else of them
  // stays.)
  void initialise_convolutions(const at::Generator& generator) {
    for (const tensor::NamedTensor& parameter : parameters()) {
      const at::Tensor weight = parameter.tensor.detach();
      if (weight.dim() != 4) continue;
      const double fan_out = double(weight.size(0) * weight.size(2) * weight.size(3));
      weight.normal_(0, std::sqrt(2.0) / std::sqrt(fan_out), generator);
    }
  }

  bool small_stem_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<ResidualBlock> blocks_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> build_resnet(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                    at::ScalarType dtype) {
  return std::make_unique<ResNet>(spec, input, std::move(generator), dtype);
}

}  // namespace skytrain::model
