#include "skytrain/train/auto_decisions.h"

#include <algorithm>

#include "skytrain/base/machine.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

// Below this a replica's step is mostly the overhead of calling operators.
constexpr int64_t kLeastSamplesPerReplica = 8;
// From here on the operators of one sample are large enough for several cores, which then share caches, weights and
// their layouts (ResNet-18 at 224 pixels has 3.6e9: 8 % faster in bf16 so; at 32 pixels, 1.1e9, there is no
// difference).
constexpr int64_t kFlopsOfLargeSamples = 2'000'000'000;
constexpr int64_t kCoresOfLargeSamples = 4;
// Every replica has gradients of its own.
constexpr double kMostMemoryForGradients = 0.25;

}  // namespace

Machine this_machine() { return {available_cores(), available_memory_bytes()}; }

std::vector<std::pair<std::string, std::string>> decide(recipe::Recipe& recipe, int64_t parameters,
                                                        const Machine& machine, const Measurements& measurements) {
  std::vector<std::pair<std::string, std::string>> decisions;
  if (!recipe.devices) {
    const int64_t by_batch =  // an automatic batch follows the devices
        recipe.train.batch == 0 ? machine.cores : std::max<int64_t>(1, recipe.train.batch / kLeastSamplesPerReplica);
    const double gradient_bytes = double(parameters) * sizeof(float);
    const int64_t by_memory =
        machine.memory_bytes == 0
            ? machine.cores
            : std::max<int64_t>(1, int64_t(kMostMemoryForGradients * double(machine.memory_bytes) / gradient_bytes));
    const int64_t by_size = machine.cores > 1 && measurements.sample_flops() >= kFlopsOfLargeSamples
                                ? (machine.cores + kCoresOfLargeSamples - 1) / kCoresOfLargeSamples
                                : machine.cores;
    recipe.devices = std::min({int64_t(machine.cores), by_batch, by_memory, by_size});
    std::string reason = str("a replica for each of ", machine.cores, machine.cores == 1 ? " core" : " cores");
    if (*recipe.devices == by_size && by_size < machine.cores)
      reason = str("a sample is enough work for ", kCoresOfLargeSamples, " cores at once");
    else if (*recipe.devices < machine.cores)
      reason = *recipe.devices == by_batch
                   ? str("at least ", kLeastSamplesPerReplica, " samples of the batch for each replica")
                   : str("gradients of ", *recipe.devices, " replicas fit a quarter of the free memory");
    decisions.emplace_back("devices", reason);
  }
  if (recipe.train.memory_format == "auto") {
    const bool resnet = recipe.model.name.starts_with("resnet");
    recipe.train.memory_format = resnet ? "channels_last" : "contiguous";
    decisions.emplace_back("train.memory_format", resnet ? "convolutions of many channels are faster so"
                                                         : "of small models and models of your own");
  }
  if (recipe.train.batch == 0) {
    const auto [batch, reason] = measurements.batch(recipe);
    recipe.train.batch = batch;
    decisions.emplace_back("train.batch", str(batch, " samples; ", reason));
    if (recipe.train.slot) recipe.train.slot = std::min(*recipe.train.slot, batch);
  }
  if (!recipe.train.slot) {
    recipe.train.slot = (recipe.train.batch + *recipe.devices - 1) / *recipe.devices;
    decisions.emplace_back("train.slot", str("batch / devices"));
  }
  if (recipe.train.precision == "auto") {
    const auto [chosen, reason] = measurements.precision(recipe);
    recipe.train.precision = chosen;
    decisions.emplace_back("train.precision", reason);
  }
  return decisions;
}

}  // namespace skytrain::train
