#include "skytrain/train/precision_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "skytrain/base/text.h"
#include "skytrain/train/model_trial.h"

namespace skytrain::train {
namespace {

struct Pass {
  double seconds = std::numeric_limits<double>::infinity(), loss = 0, gradient_norm = 0;
};

// The fastest of two, after one that fills caches and lets oneDNN choose its kernels.
Pass measure(ModelTrial& trial, model::Model& model, const Loss& loss, const at::Tensor& images,
             const at::Tensor& target, Precision precision) {
  Pass pass;
  for (int i = 0; i < 3; ++i) {
    trial.drop_gradients();
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor sum;
    {
      const Autocast autocast(precision);
      sum = loss.sum(model.forward(images).to(at::kFloat), target).div(images.size(0));
    }
    sum.backward();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (i > 0) pass.seconds = std::min(pass.seconds, seconds);
    pass.loss = sum.item<double>();
  }
  double squares = 0;
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined())
      squares += gradient.to(at::kDouble).pow(2).sum().item<double>();
  pass.gradient_norm = std::sqrt(squares);
  return pass;
}

double difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(a), 1e-12); }

bool multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") > 0;  // every processor with AMX has it too
#else
  return false;
#endif
}

}  // namespace

PrecisionChoice choose_precision(model::Model& model, const Loss& loss, const at::Tensor& images,
                                 const at::Tensor& target) {
  if (!multiplies_bf16()) return {Precision::kFp32, "this processor has no bfloat16 instructions"};
  ModelTrial trial(model);
  const Pass fp32 = measure(trial, model, loss, images, target, Precision::kFp32);
  const Pass bf16 = measure(trial, model, loss, images, target, Precision::kBf16);
  const double gain = fp32.seconds / bf16.seconds;
  const double off = std::max(difference(fp32.loss, bf16.loss), difference(fp32.gradient_norm, bf16.gradient_norm));
  const std::string figures =
      str("bf16 is ", formatted("%.2f", gain), "x as fast as fp32 here, loss and gradient norm ",
          formatted("%.2g", 100 * off), " % off");
  if (!(off <= kMostDifference)) return {Precision::kFp32, figures + ": too much"};
  if (gain < kLeastGain) return {Precision::kFp32, figures};
  return {Precision::kBf16, figures};
}

}  // namespace skytrain::train
