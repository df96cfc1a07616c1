#include "skytrain/model/conv_relu.h"

#include <ATen/TracerMode.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/_slow_conv2d_backward.h>
#include <ATen/ops/_slow_conv2d_forward.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

namespace skytrain::model {
namespace {

// Beyond this many values under the kernel the arithmetic dominates and oneDNN's own kernels win (bench/conv_relu).
constexpr int64_t kMostKernelValues = 16;
// Of the output: a piece and what it is computed from stay within a second-level cache of 2 MiB.
constexpr int64_t kPieceBytes = 1536 << 10;

struct Geometry {
  int64_t kernel, padding, channels, height, width;  // of the output, but for the first two

  static Geometry of(const at::Tensor& x, const at::Tensor& weight, int64_t padding) {
    const int64_t kernel = weight.size(2);
    return {kernel, padding, weight.size(0), x.size(2) + 2 * padding - kernel + 1,
            x.size(3) + 2 * padding - kernel + 1};
  }
  int64_t samples_per_piece(const at::Tensor& x) const {
    const int64_t sample_bytes = channels * height * width * int64_t(x.element_size());
    return std::clamp<int64_t>(kPieceBytes / sample_bytes, 1, x.size(0));
  }
};

class PiecewiseConvRelu : public torch::autograd::Function<PiecewiseConvRelu> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, int64_t padding, at::ScalarType result_type) {
    const Geometry shape = Geometry::of(x, weight, padding);
    const int64_t samples = x.size(0), piece = shape.samples_per_piece(x);
    at::Tensor result = at::empty({samples, shape.channels, shape.height, shape.width}, x.options().dtype(result_type));
    at::Tensor scratch;
    for (int64_t begin = 0; begin < samples; begin += piece) {
      const int64_t count = std::min(piece, samples - begin);
      at::Tensor part = result.narrow(0, begin, count);
      at::Tensor computed = part;
      if (result_type != x.scalar_type()) {
        if (!scratch.defined()) scratch = at::empty({piece, shape.channels, shape.height, shape.width}, x.options());
        computed = scratch.narrow(0, 0, count);
      }
      at::_slow_conv2d_forward_out(computed, x.narrow(0, begin, count), weight, {shape.kernel, shape.kernel}, bias,
                                   /*stride=*/{1, 1}, {padding, padding});
      computed.relu_();
      if (!computed.is_same(part)) part.copy_(computed);
    }
    context->save_for_backward({x, weight, result});
    context->saved_data["padding"] = padding;
    context->saved_data["bias"] = bias.has_value();
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &result = saved[2];
    const int64_t padding = context->saved_data["padding"].toInt();
    const bool with_bias = context->saved_data["bias"].toBool();
    const bool needs_x = context->needs_input_grad(0);
    const Geometry shape = Geometry::of(x, weight, padding);
    const int64_t samples = x.size(0), piece = shape.samples_per_piece(x);
    const at::Tensor gradient = gradients[0].contiguous();

    at::Tensor x_gradient, weight_gradient, bias_gradient;
    if (needs_x) x_gradient = at::empty_like(x);
    at::Tensor masked = at::empty({piece, shape.channels, shape.height, shape.width}, gradient.options());
    at::Tensor wide = gradient.scalar_type() == x.scalar_type() ? masked : at::empty(masked.sizes(), x.options());
    for (int64_t begin = 0; begin < samples; begin += piece) {
      const int64_t count = std::min(piece, samples - begin);
      at::Tensor part = masked.narrow(0, 0, count);
      at::threshold_backward_out(part, gradient.narrow(0, begin, count), result.narrow(0, begin, count), 0);
      if (!wide.is_same(masked)) part = wide.narrow(0, 0, count).copy_(part);
      const auto [dx, dw, db] =
          at::_slow_conv2d_backward(part, x.narrow(0, begin, count), weight, {shape.kernel, shape.kernel},
                                    /*stride=*/{1, 1}, {padding, padding}, {needs_x, true, with_bias});
      if (needs_x) x_gradient.narrow(0, begin, count).copy_(dx);
      weight_gradient = weight_gradient.defined() ? weight_gradient.add_(dw) : dw;
      if (with_bias) bias_gradient = bias_gradient.defined() ? bias_gradient.add_(db) : db;
    }
    return {x_gradient, weight_gradient, bias_gradient, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor conv_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t padding) {
  // A trace (torchscript.h) takes down operators that hold for any batch size, and no pieces.
  if (weight.size(1) * weight.size(2) * weight.size(3) > kMostKernelValues || x.scalar_type() != weight.scalar_type() ||
      at::tracer::impl::is_dispatch_enabled())
    return at::conv2d(x, weight, bias, /*stride=*/1, padding).relu_();
  const bool autocast = at::autocast::is_autocast_enabled(at::kCPU);
  const at::ScalarType result_type = autocast ? at::autocast::get_autocast_dtype(at::kCPU) : x.scalar_type();
  const std::optional<at::Tensor> given_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  return PiecewiseConvRelu::apply(x.contiguous(), weight, given_bias, padding, result_type);
}

}  // namespace skytrain::model
