// skytrain/train/batch_check.h
//
// What `batch: auto` means here: the largest batch whose activations fit into memory.

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "skytrain/data/dataset.h"
#include "skytrain/model/model.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/auto_decisions.h"
#include "skytrain/train/data_feed.h"

namespace skytrain::train {

// (samples, reason). The peak of a forward and backward pass of two and of four samples gives what a sample takes and
// what is needed anyhow; gradients of each replica, moments and running means are added. A power of two times the
// replicas, at most kLargestAutoBatch and a tenth of the data. Throws Error(kEnvironment) when not even one sample a
// replica fits. The model's gradients and buffers are as before when it returns.
inline constexpr int64_t kLargestAutoBatch = 4096;
// stop: as of train(); throws Stopped.
std::pair<int64_t, std::string> choose_batch(const recipe::Recipe& recipe, const Machine& machine, const DataFeed& feed,
                                             const data::DatasetInfo& info, model::Model& model,
                                             const std::function<bool()>& stop = {});

}  // namespace skytrain::train
