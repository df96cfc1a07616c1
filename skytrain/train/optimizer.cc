#include "skytrain/train/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

using Slices = std::vector<std::vector<ParameterSlice>>;
using Views = std::vector<std::vector<at::Tensor>>;  // [part][slice]

Views make_views(const std::vector<at::Tensor>& tensors, const Slices& parts) {
  Views views(parts.size());
  for (size_t part = 0; part < parts.size(); ++part)
    for (const ParameterSlice& slice : parts[part]) views[part].push_back(flat_slice(tensors[slice.parameter], slice));
  return views;
}

std::vector<at::Tensor> tensors_of(const std::vector<tensor::NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const tensor::NamedTensor& item : named) tensors.push_back(item.tensor.detach());
  return tensors;
}

// Adds one zero tensor a parameter to `state` under prefix.<name>; returns them.
std::vector<at::Tensor> add_state(std::vector<tensor::NamedTensor>& state, const std::string& prefix,
                                  const std::vector<tensor::NamedTensor>& parameters) {
  std::vector<at::Tensor> added;
  for (const tensor::NamedTensor& parameter : parameters) {
    added.push_back(at::zeros_like(parameter.tensor.detach(), at::MemoryFormat::Contiguous));
    state.push_back({prefix + "." + parameter.name, added.back()});
  }
  return added;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, const Slices& parts)
      : spec_(spec), parameters_(make_views(tensors_of(parameters), parts)), momenta_(parts.size()) {
    if (spec.momentum > 0) momenta_ = make_views(add_state(state_, "momentum_buffer", parameters), parts);
  }

  void step(int part, const std::vector<at::Tensor>& gradients, double lr, uint64_t) override {
    // A zero momentum buffer gives what PyTorch's first step gives (0 * momentum + g), so no step is special.
    at::_fused_sgd_(parameters_[part], gradients, momenta_[part], spec_.weight_decay, spec_.momentum, lr,
                    /*dampening=*/0, spec_.nesterov, /*maximize=*/false, /*is_first_step=*/false);
  }

 private:
  recipe::OptimizerSpec spec_;
  Views parameters_, momenta_;
};

class Adam final : public Optimizer {
 public:
  Adam(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, const Slices& parts)
      : spec_(spec),
        parameters_(make_views(tensors_of(parameters), parts)),
        exp_avg_(make_views(add_state(state_, "exp_avg", parameters), parts)),
        exp_avg_sq_(make_views(add_state(state_, "exp_avg_sq", parameters), parts)) {
    for (const auto& part : parts) steps_.emplace_back(part.size(), at::full({}, 0.0, at::kFloat));
  }

  void step(int part, const std::vector<at::Tensor>& gradients, double lr, uint64_t step) override {
    // One shared scalar a part: the kernel only reads it.
    if (!steps_[part].empty()) *steps_[part].front().mutable_data_ptr<float>() = float(step);
    at::_fused_adam_(parameters_[part], gradients, exp_avg_[part], exp_avg_sq_[part], /*max_exp_avg_sqs=*/{},
                     steps_[part], lr, spec_.beta1, spec_.beta2, spec_.weight_decay, spec_.eps, /*amsgrad=*/false,
                     /*maximize=*/false);
  }

 private:
  recipe::OptimizerSpec spec_;
  Views parameters_, exp_avg_, exp_avg_sq_;
  std::vector<std::vector<at::Tensor>> steps_;
};

}  // namespace

at::Tensor flat_slice(const at::Tensor& tensor, const ParameterSlice& slice) {
  return tensor.view({-1}).slice(0, slice.begin, slice.end);
}

Slices cut_parameters(const std::vector<tensor::NamedTensor>& parameters, int parts) {
  constexpr int64_t kCacheLine = 16;  // floats
  int64_t total = 0;
  for (const tensor::NamedTensor& parameter : parameters) total += parameter.tensor.numel();
  Slices result(parts);
  int64_t offset = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t size = parameters[i].tensor.numel();
    for (int part = 0; part < parts; ++part) {
      const auto cut = [&](int64_t at) {  // position in this parameter of the global cut `at`
        const int64_t local = std::clamp<int64_t>(at - offset, 0, size);
        return local == size ? size : local / kCacheLine * kCacheLine;
      };
      const int64_t begin = cut(total * part / parts), end = cut(total * (part + 1) / parts);
      if (begin < end) result[part].push_back({i, begin, end});
    }
    offset += size;
  }
  return result;
}

std::unique_ptr<Optimizer> build_optimizer(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters, const Slices& parts) {
  if (spec.name == "sgd") return std::make_unique<Sgd>(spec, parameters, parts);
  if (spec.name == "adam") return std::make_unique<Adam>(spec, parameters, parts);
  throw Error(ErrorKind::kRecipe, "train.optimizer.name",
              str("unknown optimizer \"", spec.name, "\"", did_you_mean(spec.name, {"sgd", "adam"})),
              "known: adam, sgd");
}

}  // namespace skytrain::train
