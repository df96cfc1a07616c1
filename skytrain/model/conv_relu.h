// skytrain/model/conv_relu.h
//
// relu(conv2d(x) + bias) as one differentiable operator.

#pragma once
#include <ATen/core/Tensor.h>

namespace skytrain::model {

// x [N, C, H, W], weight [O, C, k, k], bias [O] or undefined; stride 1. Result [N, O, H', W'].
at::Tensor conv_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t padding);

}  // namespace skytrain::model
