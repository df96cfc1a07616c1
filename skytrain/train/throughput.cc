#include "skytrain/train/throughput.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "skytrain/model/flops.h"

namespace skytrain::train {
namespace {

constexpr int64_t kSide = 768;  // three matrices of it stay within a second-level cache of a few MiB
constexpr int kRounds = 4;

at::ScalarType product_type(const Engine::Options& options) {
  switch (options.precision) {
    case Precision::kFp32:
      return options.dtype;
    case Precision::kBf16:
      return at::kBFloat16;
    case Precision::kFp16:
      return at::kHalf;
  }
  return options.dtype;
}

double peak_flops_per_second(Engine& engine) {
  std::vector<double> fastest(engine.replicas());
  engine.for_each_replica([&](int replica) {
    const at::NoGradGuard no_grad;
    const at::Tensor a = at::ones({kSide, kSide}, product_type(engine.options()));
    double best = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      const at::Tensor product = at::mm(a, a);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      best = std::max(best, 2.0 * kSide * kSide * kSide / seconds);
    }
    fastest[replica] = best;
  });
  double sum = 0;
  for (const double one : fastest) sum += one;
  return sum;
}

}  // namespace

OrderedJson throughput_json(Engine& engine, double samples_per_second) {
  const double flops = 3.0 * double(model::count_flops(engine.model(), engine.options().input));
  const double peak = peak_flops_per_second(engine);
  return {{"flops_per_sample", flops},
          {"flops_per_second", flops * samples_per_second},
          {"peak_flops_per_second", peak},
          {"mfu", flops * samples_per_second / peak}};
}

}  // namespace skytrain::train
