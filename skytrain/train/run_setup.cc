#include "skytrain/train/run_setup.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/tensor/memory_budget.h"
#include "skytrain/train/precision_check.h"
#include "skytrain/train/run_plan.h"

namespace skytrain::train {
namespace {

constexpr double kShareOfFreeMemory = 0.9;

}  // namespace

data::OpenOptions training_data_options(const recipe::Recipe& recipe) {
  const bool classes = Loss::kind_of(recipe.train.loss) == Loss::Kind::kCrossEntropy;
  return {.classes = recipe.model.classes,
          .target = classes ? data::TargetKind::kClass : data::TargetKind::kValues,
          .seed = recipe.seed};
}

data::OpenOptions evaluation_data_options(const recipe::Recipe& recipe, const data::DatasetInfo& train) {
  data::OpenOptions options = training_data_options(recipe);
  options.eval = true;
  options.train = &train;
  return options;
}

void check_target_values(const recipe::Recipe& recipe, const data::Dataset& dataset) {
  const data::DatasetInfo& info = dataset.info();
  if (recipe.train.loss != "bce" || info.values == 0) return;
  for (uint64_t i = 0; i < info.samples; ++i)
    for (const float value : std::span(dataset.values(i), size_t(info.values)))
      if (!(value >= 0 && value <= 1))
        throw Error(ErrorKind::kData, dataset.name(i),
                    str("has the target ", shortest_double(double(value)), ", and bce takes values from 0 to 1"),
                    "scale the column, or set train.loss: mse");
}

at::MemoryFormat memory_format_of(const recipe::Recipe& recipe) {
  return recipe.train.memory_format == "channels_last" ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

Engine::Options engine_options(const recipe::Recipe& recipe, const Machine& machine, const model::InputShape& input) {
  Engine::Options options;
  options.replicas = int(recipe.devices.value_or(machine.cores));
  options.threads_per_replica = std::max(1, machine.cores / options.replicas);
  options.precision = precision_from_string(recipe.train.precision);
  options.loss = Loss(Loss::kind_of(recipe.train.loss), recipe.train.label_smoothing);
  options.memory_format = memory_format_of(recipe);
  options.input = input;
  return options;
}

std::pair<std::string, std::string> measure_precision(const recipe::Recipe& recipe, const Machine& machine,
                                                      const DataFeed& feed, const data::DatasetInfo& info,
                                                      model::Model& model, const std::function<bool()>& stop) {
  data::Slot slot = RunPlan(recipe, feed.bucket_samples()).slots().slot(0, 0);
  const Engine::Options options = engine_options(recipe, machine, {info.channels, info.height, info.width});
  at::set_num_threads(options.threads_per_replica);
  model.set_activation_checkpointing(recipe.train.activation_checkpointing);
  for (;; slot.count = (slot.count + 1) / 2) {
    tensor::take_last_out_of_memory();  // what happened before is not of this measurement
    try {
      Batch batch = feed.batch(slot);
      if (batch.images.size(0) == 0) batch = feed.largest_batch(int64_t(slot.count));  // all are damaged
      const PrecisionChoice choice =
          choose_precision(model, options.loss, batch.images.contiguous(options.memory_format), batch.target, stop);
      return {to_string(choice.precision), choice.reason};
    } catch (const std::exception&) {
      // TorchScript's interpreter turns any exception into one of its own.
      const std::optional<tensor::OutOfMemory> full = tensor::take_last_out_of_memory();
      if (!full) throw;
      if (slot.count == 1) throw tensor::OutOfMemory(*full);
    }
  }
}

int64_t workers_of(const recipe::Recipe& recipe, const data::Dataset& dataset) {
  if (recipe.data.workers) return *recipe.data.workers;
  return dataset.encoded_pictures() == nullptr ? 0 : this_machine().cores;
}

uint64_t memory_limit(const recipe::Recipe& recipe, const Machine& machine) {
  if (recipe.memory_budget) return *recipe.memory_budget;
  if (machine.memory_bytes == 0) return std::numeric_limits<uint64_t>::max();
  return uint64_t(kShareOfFreeMemory * double(machine.memory_bytes));
}

}  // namespace skytrain::train
