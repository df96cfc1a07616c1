#include "skytrain/train/model_trial.h"

#include <ATen/core/grad_mode.h>

namespace skytrain::train {

ModelTrial::ModelTrial(model::Model& model) : model_(model) {
  for (const tensor::NamedTensor& buffer : model.buffers()) buffers_.push_back(buffer.tensor.clone());
  model.set_training(true);
}

ModelTrial::~ModelTrial() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) model_.buffers()[i].tensor.copy_(buffers_[i]);
  drop_gradients();
}

void ModelTrial::drop_gradients() {
  for (const tensor::NamedTensor& parameter : model_.parameters()) parameter.tensor.mutable_grad().reset();
}

}  // namespace skytrain::train
