#include "skytrain/model/conv_relu.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/relu.h>

namespace skytrain::model {

at::Tensor conv_relu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t padding) {
  return at::conv2d(x, weight, bias, /*stride=*/1, padding).relu_();
}

}  // namespace skytrain::model
