// skytrain/train/model_trial.h
//
// Running a model only to measure it.

#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "skytrain/model/model.h"

namespace skytrain::train {

// While alive, the model is in training mode and may be run forward and backward; at the end its buffers are what they
// were and its gradients are gone. The model must outlive it.
class ModelTrial {
 public:
  explicit ModelTrial(model::Model& model);
  ~ModelTrial();
  ModelTrial(const ModelTrial&) = delete;
  ModelTrial& operator=(const ModelTrial&) = delete;

  void drop_gradients();

 private:
  model::Model& model_;
  std::vector<at::Tensor> buffers_;  // as they were
};

}  // namespace skytrain::train
