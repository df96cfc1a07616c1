#include "skytrain/model/layers.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "skytrain/model/activation_checkpointing.h"
#include "skytrain/model/conv_relu.h"

namespace skytrain::model {

at::Tensor LayerBuilder::parameter(const std::string& name, at::IntArrayRef shape, double bound) {
  at::Tensor value = at::empty(shape, dtype);
  if (generator.defined()) value.uniform_(-bound, bound, generator);
  return parameter(name, std::move(value));
}
at::Tensor LayerBuilder::parameter(const std::string& name, at::Tensor value) {
  return model.add_parameter(name, std::move(value));
}
at::Tensor LayerBuilder::buffer(const std::string& name, at::Tensor value) {
  return model.add_buffer(name, std::move(value));
}

// kaiming_uniform_(a = sqrt(5)) is uniform in ±sqrt(6 / ((1 + 5) fan_in)) = ±1/sqrt(fan_in); the bias has the same
// bound.
Linear::Linear(LayerBuilder& builder, const std::string& name, int64_t in, int64_t out)
    : weight(builder.parameter(name + ".weight", {out, in}, 1 / std::sqrt(double(in)))),
      bias(builder.parameter(name + ".bias", {out}, 1 / std::sqrt(double(in)))) {}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

Conv2d::Conv2d(LayerBuilder& builder, const std::string& name, int64_t in, int64_t out, int64_t kernel,
               int64_t padding_, bool with_bias, int64_t stride_)
    : padding(padding_), stride(stride_) {
  const double bound = 1 / std::sqrt(double(in * kernel * kernel));
  weight = builder.parameter(name + ".weight", {out, in, kernel, kernel}, bound);
  if (with_bias) bias = builder.parameter(name + ".bias", {out}, bound);
}

at::Tensor Conv2d::operator()(const at::Tensor& x) const { return at::conv2d(x, weight, bias, stride, padding); }

at::Tensor Conv2d::relu(const at::Tensor& x) const {
  TORCH_INTERNAL_ASSERT(stride == 1);
  return conv_relu(x, weight, bias, padding);
}

BatchNorm2d::BatchNorm2d(LayerBuilder& builder, const std::string& name, int64_t channels)
    : weight(builder.parameter(name + ".weight", at::ones({channels}, builder.dtype))),
      bias(builder.parameter(name + ".bias", at::zeros({channels}, builder.dtype))),
      running_mean(builder.buffer(name + ".running_mean", at::zeros({channels}, builder.dtype))),
      running_var(builder.buffer(name + ".running_var", at::ones({channels}, builder.dtype))),
      num_batches_tracked(builder.buffer(name + ".num_batches_tracked", at::zeros({}, at::kLong))) {}

at::Tensor BatchNorm2d::operator()(const at::Tensor& x, bool training) const {
  const auto normalize = [&](const at::Tensor& mean, const at::Tensor& variance) {
    return at::batch_norm(x, weight, bias, mean, variance, training, /*momentum=*/0.1, /*eps=*/1e-5,
                          /*cudnn_enabled=*/true);
  };
  // One value a channel has no variance (PyTorch refuses it): it is normalised as in evaluation, and not learned from.
  if (training && x.numel() == x.size(1))
    return at::batch_norm(x, weight, bias, running_mean, running_var,
                          /*training=*/false, 0.1, 1e-5, /*cudnn_enabled=*/true);
  if (training && is_recomputing()) return normalize(running_mean.clone(), running_var.clone());
  if (training) num_batches_tracked.add_(1);
  return normalize(running_mean, running_var);
}

}  // namespace skytrain::model
