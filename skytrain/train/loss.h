// skytrain/train/loss.h
//
// What is minimised, as torch.nn.CrossEntropyLoss, MSELoss and BCEWithLogitsLoss with reduction "mean" do it; here as
// a sum over samples, because a step's samples are computed in slots.

#pragma once
#include <ATen/core/Tensor.h>

#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

class Loss {
 public:
  enum class Kind { kCrossEntropy, kMse, kBce };
  static Kind kind_of(const std::string& name);  // of recipe.train.loss

  Loss() = default;
  explicit Loss(Kind kind, double label_smoothing = 0) : kind_(kind), label_smoothing_(label_smoothing) {}

  // Scalar: the sum over samples of the loss of a sample; mse and bce take the mean over a sample's outputs.
  // output [n, k] float32 or float64. target: classes [n] (int64), or [n, k] of output's dtype: probabilities of the
  // classes for cross entropy, the values aimed at for mse and bce (which turn classes into 0 and 1).
  at::Tensor sum(const at::Tensor& output, const at::Tensor& target) const;

  Kind kind() const { return kind_; }

 private:
  Kind kind_ = Kind::kCrossEntropy;
  double label_smoothing_ = 0;
};

}  // namespace skytrain::train
