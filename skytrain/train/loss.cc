#include "skytrain/train/loss.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/one_hot.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {

Loss::Kind Loss::kind_of(const std::string& name) {
  if (name == "cross_entropy") return Kind::kCrossEntropy;
  if (name == "mse") return Kind::kMse;
  if (name == "bce") return Kind::kBce;
  throw Error(ErrorKind::kRecipe, "train.loss", str("unknown loss \"", name, "\""), "known: cross_entropy, mse, bce");
}

at::Tensor Loss::sum(const at::Tensor& output, const at::Tensor& target) const {
  if (kind_ == Kind::kCrossEntropy)
    return at::cross_entropy_loss(output, target, /*weight=*/{}, at::Reduction::Sum, /*ignore_index=*/-100,
                                  label_smoothing_);
  const int64_t outputs = output.size(1);
  const at::Tensor values = target.dim() == 1 ? at::one_hot(target, outputs).to(output.scalar_type()) : target;
  const at::Tensor total = kind_ == Kind::kMse
                               ? at::mse_loss(output, values, at::Reduction::Sum)
                               : at::binary_cross_entropy_with_logits(output, values, /*weight=*/{},
                                                                      /*pos_weight=*/{}, at::Reduction::Sum);
  return outputs == 1 ? total : total.div(outputs);
}

}  // namespace skytrain::train
