// skytrain/train/optimizer.h
//
// SGD and Adam on LibTorch's fused kernels (at::_fused_sgd_, at::_fused_adam_), whose arithmetic is that of
// torch.optim.SGD and torch.optim.Adam with fused=True.
//
// An optimizer can step a part of the parameters: the flat range [begin, end) of all parameters laid end to end. That
// is how replicas share one step: each updates its own part of the same memory.

#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "skytrain/recipe/recipe.h"
#include "skytrain/tensor/state.h"

namespace skytrain::train {

// A part of one parameter: elements [begin, end) of its flattened form.
struct ParameterSlice {
  size_t parameter = 0;
  int64_t begin = 0, end = 0;
};

// Cuts all elements of `parameters`, laid end to end, into `parts` nearly equal parts; cuts lie on cache lines.
std::vector<std::vector<ParameterSlice>> cut_parameters(const std::vector<tensor::NamedTensor>& parameters, int parts);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Steps part `part` in place. gradients[i]: the gradient of the part's i-th slice, flat, same dtype. step: 1-based.
  // Different parts may be stepped by different threads at the same time.
  virtual void step(int part, const std::vector<at::Tensor>& gradients, double lr, uint64_t step) = 0;
  // Moments and momenta under "exp_avg.<parameter>", …: checkpoint state.
  const std::vector<tensor::NamedTensor>& state() const { return state_; }

 protected:
  std::vector<tensor::NamedTensor> state_;
};

// parameters: leaves; the optimizer updates their memory. parts: as from cut_parameters.
std::unique_ptr<Optimizer> build_optimizer(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters,
                                           const std::vector<std::vector<ParameterSlice>>& parts);

// The flat view of a slice of `tensor` (contiguous), without autograd history.
at::Tensor flat_slice(const at::Tensor& tensor, const ParameterSlice& slice);

}  // namespace skytrain::train
