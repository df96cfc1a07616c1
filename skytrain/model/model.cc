#include "skytrain/model/model.h"

#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {

at::Tensor Model::add_parameter(const std::string& name, at::Tensor value) {
  value.set_requires_grad(true);
  parameters_.push_back({name, value});
  return value;
}

at::Tensor Model::add_buffer(const std::string& name, at::Tensor value) {
  buffers_.push_back({name, value});
  return value;
}

void Model::set_training(bool training) {
  if (training == training_) return;
  training_ = training;
  training_changed();
}

void Model::set_activation_checkpointing(bool on) {
  if (on && !has_blocks())
    throw Error(ErrorKind::kRecipe, "train.activation_checkpointing",
                "this model has no blocks that could be computed again", "set it to false, or use a resnet or convnet");
  activation_checkpointing_ = on;
}

std::unique_ptr<Model> build_model(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                   at::ScalarType dtype) {
  using Builder =
      std::unique_ptr<Model> (*)(const recipe::ModelSpec&, const InputShape&, at::Generator, at::ScalarType);
  static constexpr std::pair<const char*, Builder> kZoo[] = {
      {"simplecnn", build_simplecnn},    {"mlp", build_mlp},         {"convnet", build_convnet},
      {"resnet18", build_resnet},        {"resnet34", build_resnet}, {"resnet50", build_resnet},
      {"torchscript", load_torchscript}, {"plugin", load_plugin},
  };
  std::vector<std::string> known;
  for (const auto& [name, builder] : kZoo) {
    if (spec.name == name) return builder(spec, input, std::move(generator), dtype);
    known.emplace_back(name);
  }
  throw Error(ErrorKind::kRecipe, "model.name",
              str("unknown model \"", spec.name, "\"", did_you_mean(spec.name, known)), "known: " + join(known, ", "));
}

void share_parameters(const Model& original, Model& replica) {
  TORCH_INTERNAL_ASSERT(original.parameters().size() == replica.parameters().size());
  for (size_t i = 0; i < original.parameters().size(); ++i) {
    const at::Tensor& from = original.parameters()[i].tensor;
    const at::Tensor& to = replica.parameters()[i].tensor;
    TORCH_INTERNAL_ASSERT(from.sizes() == to.sizes());
    to.set_data(from.variable_data());
  }
}

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const tensor::NamedTensor& parameter : model.parameters()) count += parameter.tensor.numel();
  return count;
}

}  // namespace skytrain::model
