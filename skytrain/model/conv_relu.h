// skytrain/model/conv_relu.h
//
// relu(conv2d(x) + bias) as one differentiable operator.
//
// A convolution whose kernel covers few values (C * k * k small: the first layer of a network for pictures) does little
// arithmetic on each value it writes, so its time is memory traffic: oneDNN converts its blocked layout to NCHW and
// back, and the activation takes three more passes over a tensor that left the cache long ago. Here such a layer runs
// through the batch a few samples at a time, convolution (im2col and GEMM) and activation both while the piece is in
// the core's own cache, forward and backward. Other layers are at::conv2d and at::relu_.
//
// Which way is taken depends on shapes only, never on timing, so that equal runs give equal bits.

#pragma once
#include <ATen/core/Tensor.h>

namespace skytrain::model {

// x [N, C, H, W], weight [O, C, k, k], bias [O] or undefined; stride 1. Result [N, O, H', W'], in the dtype of
// at::conv2d (under autocast: bfloat16; the piecewise form computes in the inputs' dtype and rounds its result).
at::Tensor conv_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t padding);

}  // namespace skytrain::model
