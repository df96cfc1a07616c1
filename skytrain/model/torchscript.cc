#include "skytrain/model/torchscript.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/model/foreign_model.h"
#include "skytrain/model/torchscript_file.h"
#include "skytrain/model/zoo.h"

namespace skytrain::model {
namespace {

// Modes that are written into the code as constants, which is what torch.jit.trace makes of batch norm and dropout.
void find_fixed_modes(torch::jit::Block* block, std::set<bool>& modes) {
  for (torch::jit::Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) find_fixed_modes(inner, modes);
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) continue;
    const auto& arguments = schema->arguments();
    for (size_t i = 0; i < arguments.size() && i < node->inputs().size(); ++i) {
      if (arguments[i].name() != "training" && arguments[i].name() != "train") continue;
      const std::optional<c10::IValue> value = torch::jit::toIValue(node->inputs()[i]);
      if (value && value->isBool()) modes.insert(value->toBool());
    }
  }
}

std::set<bool> fixed_modes(const torch::jit::Method& forward) {
  std::set<bool> modes;
  const std::shared_ptr<torch::jit::Graph> graph = forward.graph()->copy();
  torch::jit::Inline(*graph);
  find_fixed_modes(graph->block(), modes);
  return modes;
}

torch::jit::Module load_module(const std::string& path) {
  require_torchscript(FileSystem::real(), path);
  try {
    return torch::jit::load(path, at::kCPU);
  } catch (const std::exception& failure) {
    throw Error(ErrorKind::kData, path, str("LibTorch can't load this TorchScript: ", one_line_of(failure)),
                "the module may be of a later PyTorch, need operators of a library (torchvision.ops), or be damaged");
  }
}

class TorchScriptModel final : public ForeignModel {
 public:
  TorchScriptModel(const recipe::ModelSpec& spec, at::ScalarType dtype)
      : ForeignModel(spec.path, "module", spec.classes, dtype), module_(load_module(spec.path)) {
    check_forward();
    if (dtype != at::kFloat) module_.to(dtype);
    module_.train();
    for (const auto& parameter : module_.named_parameters()) adopt_parameter(parameter.name, parameter.value);
    for (const auto& buffer : module_.named_buffers()) adopt_buffer(buffer.name, buffer.value);
    check_adopted();
    fixed_modes_ = fixed_modes(module_.get_method("forward"));
  }

  // In evaluation mode.
  std::string serialized() const {
    torch::jit::Module module = module_;  // another handle of the same
    module.eval();
    std::ostringstream bytes;
    module.save(bytes);
    module.train(training());
    return std::move(bytes).str();
  }

 private:
  void check_forward() const {
    const std::optional<torch::jit::Method> forward = module_.find_method("forward");
    if (!forward) refuse("the module has no forward method");
    const auto& arguments = forward->function().getSchema().arguments();
    size_t required = 0;  // besides self
    for (size_t i = 1; i < arguments.size(); ++i) required += !arguments[i].default_value().has_value();
    if (arguments.size() < 2 || required > 1)
      refuse(str("forward of the module takes ", required, " inputs, expected one: the images"),
             "wrap the module in one whose forward takes images [N, C, H, W]");
  }

  at::Tensor run(const at::Tensor& images) override {
    if (fixed_modes_.contains(!training()))
      refuse(str("the module's batch norm or dropout is fixed in ", training() ? "evaluation" : "training",
                 " mode, as torch.jit.trace does it"),
             "save it by torch.jit.script(model).save(\"model.pt\"), which keeps both modes");
    const c10::IValue result = module_.get_method("forward")({images});
    if (result.isTensor()) return result.toTensor();
    refuse(str("forward of the module returns ", result.type()->repr_str(), ", expected one tensor, the logits"),
           "wrap the module in one whose forward returns logits [N, classes]");
  }

  void training_changed() override { module_.train(training()); }

  torch::jit::Module module_;
  std::set<bool> fixed_modes_;
};

// A module that owns the model's tensors under their names: "layer1.0.conv1.weight" is the attribute "weight" of the
// module "conv1" of "0" of "layer1".
class ModuleTree {
 public:
  void add(const std::string& name, const at::Tensor& tensor, bool is_buffer) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos)
      own_.push_back({name, tensor, is_buffer});
    else
      child(name.substr(0, dot)).add(name.substr(dot + 1), tensor, is_buffer);
  }

  // path: a name of its own for the module's type.
  torch::jit::Module build(const std::shared_ptr<torch::jit::CompilationUnit>& unit, const std::string& path) const {
    torch::jit::Module module(c10::QualifiedName(path), unit, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), false);
    for (const auto& [name, tensor, is_buffer] : own_) module.register_parameter(name, tensor, is_buffer);
    for (const auto& [name, tree] : children_) module.register_module(name, tree->build(unit, str(path, "_", name)));
    return module;
  }

 private:
  ModuleTree& child(const std::string& name) {
    for (const auto& [known, tree] : children_)
      if (known == name) return *tree;
    return *children_.emplace_back(name, std::make_unique<ModuleTree>()).second;
  }

  struct Own {
    std::string name;
    at::Tensor tensor;
    bool is_buffer;
  };
  std::vector<Own> own_;
  std::vector<std::pair<std::string, std::unique_ptr<ModuleTree>>> children_;
};

torch::jit::Module traced(Model& model, const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  ModuleTree tree;
  for (const tensor::NamedTensor& item : model.parameters()) tree.add(item.name, item.tensor, /*is_buffer=*/false);
  for (const tensor::NamedTensor& item : model.buffers()) tree.add(item.name, item.tensor, /*is_buffer=*/true);
  torch::jit::Module module = tree.build(std::make_shared<torch::jit::CompilationUnit>(), "__torch__.skytrain.Model");
  const auto [state, outputs] = torch::jit::tracer::trace(
      {images},
      [&model](const torch::jit::Stack& inputs) { return torch::jit::Stack{model.forward(inputs[0].toTensor())}; },
      [](const at::Tensor&) { return ""; }, /*strict=*/true, /*force_outplace=*/false, &module, {"images"});
  torch::jit::Function* const forward = module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), state->graph);
  module.type()->addMethod(forward);
  return module;
}

// A trace holds for the sizes that it met, where the model's code reads them as plain numbers.
void check_other_batch(torch::jit::Module& module, Model& model, const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const at::Tensor more = at::cat({images, at::ones_like(images), images});
  const at::Tensor expected = model.forward(more);
  const std::string hint =
      "its forward must not read sizes as numbers: x.flatten(1) in place of x.view({x.size(0), -1})";
  at::Tensor output;
  try {
    output = module.forward({more}).toTensor();
  } catch (const std::exception& failure) {
    throw Error(ErrorKind::kRecipe, "model", "its trace fails for another batch size: " + one_line_of(failure), hint);
  }
  if (output.sizes() != expected.sizes() || !at::allclose(output, expected, 1e-3, 1e-5, /*equal_nan=*/true))
    throw Error(ErrorKind::kRecipe, "model", "its trace gives other results for another batch size", hint);
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): all builders have one signature
std::unique_ptr<Model> load_torchscript(const recipe::ModelSpec& spec, const InputShape&, at::Generator,
                                        at::ScalarType dtype) {
  return std::make_unique<TorchScriptModel>(spec, dtype);
}

void save_torchscript(FileSystem& fs, const Model& model, const std::string& path) {
  const auto* ours = dynamic_cast<const TorchScriptModel*>(&model);
  if (ours == nullptr) throw Error(ErrorKind::kRecipe, "model.name", "this model did not come as TorchScript");
  write_file_atomically(fs, path, ours->serialized());
}

void trace(FileSystem& fs, Model& model, const at::Tensor& images, const std::string& path) {
  const bool training = model.training();
  model.set_training(false);
  std::ostringstream bytes;
  try {
    torch::jit::Module module = traced(model, images);
    check_other_batch(module, model, images);
    module.save(bytes);
  } catch (...) {
    model.set_training(training);
    throw;
  }
  model.set_training(training);
  write_file_atomically(fs, path, std::move(bytes).str());
}

}  // namespace skytrain::model
