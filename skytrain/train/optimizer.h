// skytrain/train/optimizer.h
//
// SGD, Adam, AdamW and LAMB. All but LAMB run on LibTorch's fused kernels (at::_fused_sgd_, _fused_adam_,
// _fused_adamw_), whose arithmetic is that of torch.optim with fused=True.
//
// An optimizer can step a part of the parameters: the flat range [begin, end) of all parameters laid end to end. That
// is how replicas share one step: each updates its own part of the same memory.

#pragma once
#include <ATen/core/Tensor.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/recipe/recipe.h"
#include "skytrain/tensor/state.h"
#include "skytrain/train/parameter_groups.h"

namespace skytrain::train {

// What a step does to all of its parts alike.
struct StepSettings {
  double lr = 0;                   // scheduled; groups scale it
  std::optional<double> momentum;  // in place of sgd's momentum, or of the first beta
  uint64_t step = 0;               // 1-based count of applied steps: Adam's bias correction
  double loss_limit = std::numeric_limits<double>::infinity();  // of the step's mean loss; beyond it nothing is applied
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Steps part `part` in place. gradients[i]: the gradient of the part's i-th slice, flat, same dtype as the parameter.
  // Different parts may be stepped by different threads at the same time. With needs_all_parts(), this only prepares
  // the step of the part, and finish() does it once every part is prepared.
  virtual void step(int part, const std::vector<at::Tensor>& gradients, const StepSettings& settings) = 0;
  virtual bool needs_all_parts() const { return false; }
  virtual void finish(int /*part*/, const StepSettings&) {}

  // Moments and momenta under "exp_avg.<parameter>", …: checkpoint state.
  const std::vector<tensor::NamedTensor>& state() const { return state_; }

 protected:
  std::vector<tensor::NamedTensor> state_;
};

// parameters: leaves; the optimizer updates their memory. parts: as from cut_parameters.
// Throws Error(kRecipe) for a group whose pattern matches no parameter.
std::unique_ptr<Optimizer> build_optimizer(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters,
                                           const std::vector<std::vector<ParameterSlice>>& parts);

// For optimizers: adds a zero tensor for each parameter to `state`, named "<moment>.<parameter>"; returns them.
std::vector<at::Tensor> add_moment(std::vector<tensor::NamedTensor>& state, const std::string& moment,
                                   const std::vector<tensor::NamedTensor>& parameters);

}  // namespace skytrain::train
