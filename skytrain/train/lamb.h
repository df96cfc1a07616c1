// skytrain/train/lamb.h
//
// LAMB (You et al. 2019, "Large Batch Optimization for Deep Learning", arXiv 1904.00962, algorithm 2):
//   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p,   p -= lr * (|p| / |u|) * u
// with Adam's moments m and v, norms over a whole parameter tensor, and a ratio of 1 where either norm is 0.
//
// LibTorch has no fused kernel for it. Here one pass over memory updates the moments, writes u and sums both norms; a
// second applies it.

#pragma once
#include <memory>
#include <vector>

#include "skytrain/train/optimizer.h"

namespace skytrain::train {

std::unique_ptr<Optimizer> build_lamb(const recipe::OptimizerSpec& spec,
                                      const std::vector<tensor::NamedTensor>& parameters,
                                      const std::vector<std::vector<ParameterSlice>>& parts);

}  // namespace skytrain::train
