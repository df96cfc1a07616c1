// A model of your own: a small residual network. Build it as the CMakeLists.txt beside it does, and train it by
//
//     model: {name: plugin, path: libmynet.so, classes: 10}

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "skytrain/model/plugin.h"

namespace nn = torch::nn;

class MyNet : public nn::Module {
 public:
  explicit MyNet(const skytrain::ModelShape& shape)
      : stem_(register_module("stem", convolution(shape.channels))),
        norm1_(register_module("norm1", nn::BatchNorm2d(kWidth))),
        conv_(register_module("conv", convolution(kWidth))),
        norm2_(register_module("norm2", nn::BatchNorm2d(kWidth))),
        fc_(register_module("fc", nn::Linear(kWidth, shape.classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = norm1_(stem_(images)).relu();
    x = (x + norm2_(conv_(x))).relu();
    return fc_(x.mean({2, 3}));
  }

 private:
  static constexpr int64_t kWidth = 16;
  static nn::Conv2d convolution(int64_t channels) {
    return nn::Conv2d(nn::Conv2dOptions(channels, kWidth, /*kernel_size=*/3).padding(1).bias(false));
  }

  nn::Conv2d stem_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv_;
  nn::BatchNorm2d norm2_;
  nn::Linear fc_;
};

SKYTRAIN_MODEL(MyNet)
