#include "skytrain/train/batch_check.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/model_trial.h"
#include "skytrain/train/run_setup.h"
#include "skytrain/train/stopped.h"

namespace skytrain::train {
namespace {

// What a forward and backward pass of `samples` takes beyond what is there before, at its peak.
uint64_t peak_of_pass(const Engine::Options& options, const DataFeed& feed, ModelTrial& trial, model::Model& model,
                      int64_t samples) {
  trial.drop_gradients();
  const uint64_t before = tensor::memory_use().live;
  tensor::reset_peak_memory();
  const Batch batch = feed.largest_batch(samples);
  at::Tensor loss;
  {
    const Autocast autocast(options.precision);
    loss = options.loss.sum(model.forward(batch.images.contiguous(options.memory_format)).to(at::kFloat), batch.target);
  }
  loss.backward();
  return tensor::memory_use().peak - before;
}

// Bytes of an optimizer's state and a running mean, for each byte of parameters.
int64_t copies_of_parameters(const recipe::Recipe& recipe) {
  const recipe::OptimizerSpec& optimizer = recipe.train.optimizer;
  const int64_t moments = optimizer.name == "sgd" ? (optimizer.momentum > 0 ? 1 : 0) : 2;
  return moments + (optimizer.name == "lamb" ? 1 : 0) + (recipe.train.ema ? 1 : 0);
}

}  // namespace

std::pair<int64_t, std::string> choose_batch(const recipe::Recipe& recipe, const Machine& machine, const DataFeed& feed,
                                             const data::DatasetInfo& info, model::Model& model,
                                             const std::function<bool()>& stop) {
  const Engine::Options options = engine_options(recipe, machine, {info.channels, info.height, info.width});
  at::set_num_threads(options.threads_per_replica);
  ModelTrial trial(model);
  model.set_activation_checkpointing(recipe.train.activation_checkpointing);
  const int64_t few = std::min<int64_t>(2, int64_t(info.samples)), more = std::min<int64_t>(4, int64_t(info.samples));
  const uint64_t of_few = peak_of_pass(options, feed, trial, model, few);
  throw_if_stopped(stop);
  const uint64_t of_more = peak_of_pass(options, feed, trial, model, more);
  trial.drop_gradients();

  uint64_t parameters = 0;
  for (const tensor::NamedTensor& parameter : model.parameters()) parameters += parameter.tensor.nbytes();
  const double replicas = double(options.replicas);
  const double a_sample =
      more > few && of_more > of_few ? double(of_more - of_few) / double(more - few) : double(of_few) / double(few);
  const double anyhow = std::max(0.0, double(of_few) - a_sample * double(few));  // gradients, mostly
  const double fixed =
      double(tensor::memory_use().live) + double(parameters) * double(copies_of_parameters(recipe)) + replicas * anyhow;
  const double budget = double(memory_limit(recipe, machine));
  const double fitting = (budget - fixed) / (replicas * a_sample);
  if (fitting < 1)
    throw Error(ErrorKind::kEnvironment, "train.batch",
                str("auto finds none that fits: a sample takes ", human_bytes(a_sample), " on each of ",
                    options.replicas, " devices, beside ", human_bytes(fixed), ", of ", human_bytes(budget)),
                "raise memory_budget, use fewer devices, or set train.activation_checkpointing: true");
  const int64_t most = std::min<int64_t>(kLargestAutoBatch, std::max<int64_t>(1, int64_t(info.samples / 10)));
  const int64_t each = std::min(int64_t(fitting), std::max<int64_t>(1, most / options.replicas));
  const int64_t batch = int64_t(std::bit_floor(uint64_t(each))) * options.replicas;
  return {batch, str("activations of ", human_bytes(a_sample), " a sample: ", int64_t(fitting * replicas), " fit ",
                     human_bytes(budget), int64_t(fitting) > each ? str("; at most ", most) : "")};
}

}  // namespace skytrain::train
