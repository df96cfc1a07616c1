// Seconds of an optimizer's step on the parameters of ResNet-50, as the trainer makes it: each core steps its own part.
//   optimizer_step --json   ->   {"adamw_25m_s": …, "sgd_25m_s": …, "lamb_25m_s": …, "parameters": …, "threads": …}

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/base/machine.h"
#include "skytrain/model/model.h"
#include "skytrain/tensor/memory.h"
#include "skytrain/train/optimizer.h"

namespace {

using namespace skytrain;

constexpr int kWarmup = 5, kSteps = 30;

double median_step(const recipe::OptimizerSpec& spec, const std::vector<tensor::NamedTensor>& parameters, int threads) {
  const auto parts = train::cut_parameters(parameters, threads);
  const auto optimizer = train::build_optimizer(spec, parameters, parts);
  std::vector<at::Tensor> gradients;
  for (const tensor::NamedTensor& parameter : parameters) gradients.push_back(at::randn(parameter.tensor.sizes()));
  std::vector<double> seconds;
  std::barrier meeting(threads);
  const auto work = [&](int part) {
    at::set_num_threads(1);
    const at::NoGradGuard no_grad;
    for (int step = 1; step <= kWarmup + kSteps; ++step) {
      meeting.arrive_and_wait();
      const auto begin = std::chrono::steady_clock::now();
      std::vector<at::Tensor> own;
      for (const train::ParameterSlice& slice : parts[part])
        own.push_back(train::flat_slice(gradients[slice.parameter], slice));
      const train::StepSettings settings{.lr = 1e-6, .step = uint64_t(step)};
      optimizer->step(part, own, settings);
      meeting.arrive_and_wait();
      if (optimizer->needs_all_parts()) {
        optimizer->finish(part, settings);
        meeting.arrive_and_wait();
      }
      const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (part == 0 && step > kWarmup) seconds.push_back(taken);
    }
  };
  std::vector<std::thread> others;
  for (int part = 1; part < threads; ++part) others.emplace_back(work, part);
  work(0);
  for (std::thread& other : others) other.join();
  std::nth_element(seconds.begin(), seconds.begin() + kSteps / 2, seconds.end());
  return seconds[kSteps / 2];
}

}  // namespace

int main() {
  const int threads = available_cores();
  tensor::keep_freed_memory(threads);
  recipe::ModelSpec spec;
  spec.name = "resnet50";
  spec.classes = 1000;
  const auto model = model::build_model(spec, {3, 224, 224}, at::detail::createCPUGenerator(0));
  OrderedJson result;
  for (const char* name : {"adamw", "sgd", "lamb"}) {
    recipe::OptimizerSpec optimizer;
    optimizer.name = name;
    optimizer.lr = 1e-6;
    optimizer.momentum = 0.9;
    if (optimizer.name != "sgd") optimizer.weight_decay = 0.01;
    result[std::string(name) + "_25m_s"] = median_step(optimizer, model->parameters(), threads);
  }
  result["parameters"] = model::count_parameters(*model);
  result["threads"] = threads;
  std::printf("%s\n", result.dump().c_str());
}
