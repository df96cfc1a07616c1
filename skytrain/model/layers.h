// skytrain/model/layers.h
//
// The layers that the zoo is made of. Each registers its tensors with the model under PyTorch's names and draws its
// initial values as the PyTorch module of the same name does (torch/nn/modules/{linear,conv,batchnorm}.py).

#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <string>

#include "skytrain/model/model.h"

namespace skytrain::model {

// What a layer needs while its model is being built.
struct LayerBuilder {
  Model& model;
  at::Generator generator;  // undefined: parameters get no values
  at::ScalarType dtype;

  at::Tensor parameter(const std::string& name, at::IntArrayRef shape, double bound);  // uniform in [-bound, bound)
  at::Tensor parameter(const std::string& name, at::Tensor value);
  at::Tensor buffer(const std::string& name, at::Tensor value);
};

// y = x W^T + b; x [N, in], W [out, in].
struct Linear {
  Linear() = default;
  Linear(LayerBuilder& builder, const std::string& name, int64_t in, int64_t out);
  at::Tensor operator()(const at::Tensor& x) const;
  at::Tensor weight, bias;
};

// Square kernel; x [N, in, H, W], weight [out, in, k, k].
struct Conv2d {
  Conv2d() = default;
  Conv2d(LayerBuilder& builder, const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t padding,
         bool with_bias, int64_t stride = 1);
  at::Tensor operator()(const at::Tensor& x) const;
  // relu(conv(x)) with the engine of conv_relu.h. REQUIRES: stride 1.
  at::Tensor relu(const at::Tensor& x) const;
  at::Tensor weight, bias;  // bias undefined without one
  int64_t padding = 0, stride = 1;
};

// eps 1e-5, momentum 0.1, affine. A single value a channel (one sample of 1x1) is normalised by the running statistics.
// While a block is computed again (activation_checkpointing.h) the running statistics
// stay as they are.
struct BatchNorm2d {
  BatchNorm2d() = default;
  BatchNorm2d(LayerBuilder& builder, const std::string& name, int64_t channels);
  at::Tensor operator()(const at::Tensor& x, bool training) const;
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

}  // namespace skytrain::model
