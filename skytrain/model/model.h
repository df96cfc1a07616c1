// skytrain/model/model.h
//
// A model: named parameters and buffers, and a forward pass.
//
// Models are built from ATen operators and plain structs of tensors (layers.h) instead of torch::nn, whose headers cost
// every unit half a minute of compilation. Names are those that the same model has in PyTorch, so that state dicts fit.
//
// A model may have replicas: models that share its parameters' memory but have buffers, gradients and activations of
// their own, so that several threads can compute different samples of one step.

#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "skytrain/recipe/recipe.h"
#include "skytrain/tensor/state.h"

namespace skytrain::model {

struct InputShape {
  int64_t channels = 0, height = 0, width = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // images: NCHW, the parameters' dtype (under autocast: float32). Returns logits [N, classes].
  // One caller at a time for each replica.
  virtual at::Tensor forward(const at::Tensor& images) = 0;

  // Leaves that require gradients, in order of registration (the order of PyTorch's state_dict).
  const std::vector<tensor::NamedTensor>& parameters() const { return parameters_; }
  // State without gradients (batch norm's running statistics).
  const std::vector<tensor::NamedTensor>& buffers() const { return buffers_; }

  // Training: batch norm uses and updates batch statistics. Evaluation: it uses the running ones.
  void set_training(bool training);
  bool training() const { return training_; }

  // On: forward keeps only the inputs of the model's blocks, and backward computes a block's activations again when it
  // needs them: less memory, a quarter more time, the same bits (activation_checkpointing.h).
  // Throws Error(kRecipe) when on is true and the model has no blocks.
  void set_activation_checkpointing(bool on);
  bool activation_checkpointing() const { return activation_checkpointing_; }

 protected:
  Model() = default;
  // For models that keep a mode of their own.
  virtual void training_changed() {}
  virtual bool has_blocks() const { return false; }
  // Called by layers while the model is being built. The returned tensor is the registered one.
  at::Tensor add_parameter(const std::string& name, at::Tensor value);
  at::Tensor add_buffer(const std::string& name, at::Tensor value);
  friend struct LayerBuilder;

 private:
  std::vector<tensor::NamedTensor> parameters_, buffers_;
  bool training_ = true, activation_checkpointing_ = false;
};

// Builds spec.name with PyTorch's default initialisation, drawn in PyTorch's order from `generator`: a generator seeded
// like torch.manual_seed(n) gives the weights that Python gets. An undefined generator leaves the parameters without
// values: for a replica, or to count them. dtype: float32, or float64 for parity checks.
// Throws Error(kRecipe) when the model can't take this input (too small for its pooling), and for a model that comes in
// a file (TorchScript, plug-in) what load_torchscript and load_plugin throw. Not thread-safe.
std::unique_ptr<Model> build_model(const recipe::ModelSpec& spec, const InputShape& input, at::Generator generator,
                                   at::ScalarType dtype = at::kFloat);

// Makes `replica`, built from the same spec, use the memory of `original`'s parameters (not its buffers).
void share_parameters(const Model& original, Model& replica);

int64_t count_parameters(const Model& model);

}  // namespace skytrain::model
