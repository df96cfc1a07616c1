// skytrain/train/run_setup.h
//
// From a recipe to what the parts of a run are told: data, engine, precision. Shared by training, evaluation and
// export.

#pragma once
#include <functional>
#include <string>
#include <utility>

#include "skytrain/data/dataset.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/auto_decisions.h"
#include "skytrain/train/data_feed.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

// What the recipe expects of data.train.
data::OpenOptions training_data_options(const recipe::Recipe& recipe);
// Of data.eval, whose classes and features mean what they mean in `train`, which must outlive the data set.
data::OpenOptions evaluation_data_options(const recipe::Recipe& recipe, const data::DatasetInfo& train);

// Throws Error(kData) for a target value outside [0, 1] where the loss is bce.
void check_target_values(const recipe::Recipe& recipe, const data::Dataset& dataset);

at::MemoryFormat memory_format_of(const recipe::Recipe& recipe);

// Devices, threads, precision (fp32 while it is auto), memory format, loss and input: what any use of the model needs.
Engine::Options engine_options(const recipe::Recipe& recipe, const Machine& machine, const model::InputShape& input);

// auto's decision: (value of train.precision, reason), measured on the first slot of the run, or what of it fits
// into memory. REQUIRES: recipe.devices
// and train.slot have values.
std::pair<std::string, std::string> measure_precision(const recipe::Recipe& recipe, const Machine& machine,
                                                      const DataFeed& feed, const data::DatasetInfo& info,
                                                      model::Model& model, const std::function<bool()>& stop = {});

// The most threads that make batches ahead of the steps: data.workers, or (auto) a core each where samples are decoded,
// and none where they lie in memory: to copy them costs less than to hand them over.
int64_t workers_of(const recipe::Recipe& recipe, const data::Dataset& dataset);

// What tensors may take: recipe.memory_budget, or nine tenths of what is free, because the kernel kills a process that
// takes all of it. The largest number where nobody knows what is free.
uint64_t memory_limit(const recipe::Recipe& recipe, const Machine& machine);

}  // namespace skytrain::train
