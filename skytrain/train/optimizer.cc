#include "skytrain/train/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/train/lamb.h"

namespace skytrain::train {
namespace {

using Slices = std::vector<std::vector<ParameterSlice>>;

// The slices of one part that share their settings: what one call of a fused kernel can step.
struct Group {
  ParameterSettings settings;
  std::vector<size_t> members;  // indices of the part's slices
  std::vector<at::Tensor> parameters, first, second;
  std::vector<at::Tensor> steps;  // Adam: the same scalar once a member
};

class Fused : public Optimizer {
 protected:
  Fused(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, const Slices& parts,
        const std::vector<std::string>& moments)
      : spec_(spec), parts_(parts.size()) {
    std::vector<std::vector<at::Tensor>> states;
    for (const std::string& moment : moments) states.push_back(add_moment(state_, moment, parameters));
    const std::vector<ParameterSettings> settings = settings_of(spec, parameters);
    for (size_t part = 0; part < parts.size(); ++part) {
      for (size_t i = 0; i < parts[part].size(); ++i) {
        const ParameterSlice& slice = parts[part][i];
        Group& group = group_for(part, settings[slice.parameter]);
        group.members.push_back(i);
        group.parameters.push_back(flat_slice(parameters[slice.parameter].tensor.detach(), slice));
        if (!states.empty()) group.first.push_back(flat_slice(states[0][slice.parameter], slice));
        if (states.size() > 1) group.second.push_back(flat_slice(states[1][slice.parameter], slice));
      }
      for (Group& group : parts_[part]) group.steps.assign(group.members.size(), at::full({}, 0.0, at::kFloat));
    }
  }

  virtual void step_group(Group& group, const std::vector<at::Tensor>& gradients, const StepSettings& settings) = 0;

  void step(int part, const std::vector<at::Tensor>& gradients, const StepSettings& settings) final {
    for (Group& group : parts_[part]) {
      if (group.settings.lr_scale == 0) continue;
      if (group.members.size() == gradients.size()) {
        step_group(group, gradients, settings);
        continue;
      }
      std::vector<at::Tensor> own;
      own.reserve(group.members.size());
      for (const size_t member : group.members) own.push_back(gradients[member]);
      step_group(group, own, settings);
    }
  }

  recipe::OptimizerSpec spec_;

 private:
  Group& group_for(size_t part, const ParameterSettings& settings) {
    for (Group& group : parts_[part])
      if (group.settings == settings) return group;
    return parts_[part].emplace_back(Group{.settings = settings});
  }

  std::vector<std::vector<Group>> parts_;
};

class Sgd final : public Fused {
 public:
  Sgd(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, const Slices& parts)
      : Fused(spec, parameters, parts,
              spec.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}) {}

 private:
  void step_group(Group& group, const std::vector<at::Tensor>& gradients, const StepSettings& settings) override {
    // A zero momentum buffer gives what PyTorch's first step gives (0 * momentum + g), so no step is special.
    const double momentum = spec_.momentum > 0 ? settings.momentum.value_or(spec_.momentum) : 0;
    at::_fused_sgd_(group.parameters, gradients, group.first, group.settings.weight_decay, momentum,
                    settings.lr * group.settings.lr_scale, /*dampening=*/0, spec_.nesterov, /*maximize=*/false,
                    /*is_first_step=*/false);
  }
};

class Adam final : public Fused {
 public:
  Adam(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, const Slices& parts,
       bool decoupled)
      : Fused(spec, parameters, parts, {"exp_avg", "exp_avg_sq"}), decoupled_(decoupled) {}

 private:
  void step_group(Group& group, const std::vector<at::Tensor>& gradients, const StepSettings& settings) override {
    *group.steps.front().mutable_data_ptr<float>() = float(settings.step);
    const double lr = settings.lr * group.settings.lr_scale, beta1 = settings.momentum.value_or(spec_.beta1);
    const auto kernel = decoupled_ ? static_cast<Kernel*>(at::_fused_adamw_) : static_cast<Kernel*>(at::_fused_adam_);
    kernel(group.parameters, gradients, group.first, group.second, /*max_exp_avg_sqs=*/{}, group.steps, lr, beta1,
           spec_.beta2, group.settings.weight_decay, spec_.eps, /*amsgrad=*/false, /*maximize=*/false, {}, {});
  }

  using Kernel = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                      double, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&);
  bool decoupled_;
};

}  // namespace

std::vector<at::Tensor> add_moment(std::vector<tensor::NamedTensor>& state, const std::string& moment,
                                   const std::vector<tensor::NamedTensor>& parameters) {
  std::vector<at::Tensor> added;
  for (const tensor::NamedTensor& parameter : parameters) {
    added.push_back(at::zeros_like(parameter.tensor.detach(), at::MemoryFormat::Preserve));
    state.push_back({moment + "." + parameter.name, added.back()});
  }
  return added;
}

std::unique_ptr<Optimizer> build_optimizer(const recipe::OptimizerSpec& spec,
                                           const std::vector<tensor::NamedTensor>& parameters, const Slices& parts) {
  if (spec.name == "sgd") return std::make_unique<Sgd>(spec, parameters, parts);
  if (spec.name == "adam") return std::make_unique<Adam>(spec, parameters, parts, /*decoupled=*/false);
  if (spec.name == "adamw") return std::make_unique<Adam>(spec, parameters, parts, /*decoupled=*/true);
  if (spec.name == "lamb") return build_lamb(spec, parameters, parts);
  const std::vector<std::string> known = {"sgd", "adam", "adamw", "lamb"};
  throw Error(ErrorKind::kRecipe, "train.optimizer.name",
              str("unknown optimizer \"", spec.name, "\"", did_you_mean(spec.name, known)),
              "known: " + join(known, ", "));
}

}  // namespace skytrain::train
