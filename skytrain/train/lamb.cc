#include "skytrain/train/lamb.h"

#include <ATen/ops/empty_like.h>

#include <cmath>

#include "skytrain/train/loops.h"

namespace skytrain::train {
namespace {

class Lamb final : public Optimizer {
 public:
  Lamb(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters,
       const std::vector<std::vector<ParameterSlice>>& parts)
      : spec_(spec),
        settings_(settings_of(spec, parameters)),
        parts_(parts.size()),
        norms_(parameters.size(), std::vector<LambNorms>(parts.size())) {
    const std::vector<at::Tensor> first = add_moment(state_, "exp_avg", parameters);
    const std::vector<at::Tensor> second = add_moment(state_, "exp_avg_sq", parameters);
    for (size_t part = 0; part < parts.size(); ++part)
      for (const ParameterSlice& slice : parts[part]) {
        const at::Tensor view = flat_slice(parameters[slice.parameter].tensor.detach(), slice);
        parts_[part].push_back({slice.parameter, view, flat_slice(first[slice.parameter], slice),
                                flat_slice(second[slice.parameter], slice), at::empty_like(view)});
      }
  }

  bool needs_all_parts() const override { return true; }

  void step(int part, const std::vector<at::Tensor>& gradients, const StepSettings& settings) override {
    const double beta1 = settings.momentum.value_or(spec_.beta1);
    for (size_t i = 0; i < parts_[part].size(); ++i) {
      const Slice& slice = parts_[part][i];
      const LambFactors factors{.beta1 = beta1,
                                .beta2 = spec_.beta2,
                                .first_scale = 1 / (1 - std::pow(beta1, double(settings.step))),
                                .second_scale = 1 / (1 - std::pow(spec_.beta2, double(settings.step))),
                                .eps = spec_.eps,
                                .weight_decay = settings_[slice.parameter].weight_decay};
      const auto prepare = [&]<class T>(T) {
        return lamb_update(slice.values.const_data_ptr<T>(), gradients[i].const_data_ptr<T>(),
                           slice.first.mutable_data_ptr<T>(), slice.second.mutable_data_ptr<T>(),
                           slice.update.mutable_data_ptr<T>(), slice.values.numel(), factors);
      };
      norms_[slice.parameter][part] = slice.values.scalar_type() == at::kDouble ? prepare(double()) : prepare(float());
    }
  }

  void finish(int part, const StepSettings& settings) override {
    for (const Slice& slice : parts_[part]) {
      LambNorms whole;
      for (const LambNorms& norms : norms_[slice.parameter]) {
        whole.parameter += norms.parameter;
        whole.update += norms.update;
      }
      const double ratio = whole.parameter > 0 && whole.update > 0 ? std::sqrt(whole.parameter / whole.update) : 1;
      slice.values.add_(slice.update, -settings.lr * settings_[slice.parameter].lr_scale * ratio);
    }
  }

 private:
  struct Slice {
    size_t parameter;
    at::Tensor values, first, second, update;
  };

  recipe::OptimizerSpec spec_;
  std::vector<ParameterSettings> settings_;
  std::vector<std::vector<Slice>> parts_;
  std::vector<std::vector<LambNorms>> norms_;  // [parameter][part]; zeros where a part has nothing of it
};

}  // namespace

std::unique_ptr<Optimizer> build_lamb(const recipe::OptimizerSpec& spec,
                                      const std::vector<tensor::NamedTensor>& parameters,
                                      const std::vector<std::vector<ParameterSlice>>& parts) {
  return std::make_unique<Lamb>(spec, parameters, parts);
}

}  // namespace skytrain::train
