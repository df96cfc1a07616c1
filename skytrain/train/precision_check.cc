#include "skytrain/train/precision_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "skytrain/base/cpu_clock.h"
#include "skytrain/base/text.h"
#include "skytrain/train/model_trial.h"
#include "skytrain/train/stopped.h"

namespace skytrain::train {
namespace {

constexpr int kLeastRounds = 3, kMostRounds = 20;
constexpr double kSecondsOfRounds = 0.3;

struct Pass {
  double seconds = std::numeric_limits<double>::infinity(), loss = 0, gradient_norm = 0;
};

// One forward and backward pass; keeps the least time of all calls.
void measure(ModelTrial& trial, model::Model& model, const Loss& loss, const at::Tensor& images,
             const at::Tensor& target, Precision precision, Pass& pass) {
  trial.drop_gradients();
  const double begin = process_cpu_seconds();
  at::Tensor sum;
  {
    const Autocast autocast(precision);
    sum = loss.sum(model.forward(images).to(at::kFloat), target).div(images.size(0));
  }
  sum.backward();
  pass.seconds = std::min(pass.seconds, process_cpu_seconds() - begin);
  pass.loss = sum.item<double>();
  double squares = 0;
  for (const tensor::NamedTensor& parameter : model.parameters())
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined())
      squares += gradient.to(at::kDouble).pow(2).sum().item<double>();
  pass.gradient_norm = std::sqrt(squares);
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
                                 const at::Tensor& target, const std::function<bool()>& stop) {
  if (!multiplies_bf16()) return {Precision::kFp32, "this processor has no bfloat16 instructions"};
  ModelTrial trial(model);
  Pass fp32, bf16;
  const double begin = process_cpu_seconds();
  // In turns, so that both meet the same machine; the first of each fills caches and lets oneDNN choose its kernels.
  for (int round = 0; round < kMostRounds && (round < kLeastRounds || process_cpu_seconds() - begin < kSecondsOfRounds);
       ++round) {
    throw_if_stopped(stop);
    measure(trial, model, loss, images, target, Precision::kFp32, fp32);
    throw_if_stopped(stop);
    measure(trial, model, loss, images, target, Precision::kBf16, bf16);
  }
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
