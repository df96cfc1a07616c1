// skytrain/train/evaluator.h
//
// Loss and accuracy over a whole data set: every sample once, equal weights, whatever the batch size or the number of
// replicas.

#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/dataset.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

struct Mistake {
  uint64_t index = 0;
  int64_t label = 0, predicted = 0;
  double probability = 0;  // that the model gave to `predicted`
};

struct EvaluationDetails {
  Evaluation result;               // step and seconds are the caller's to fill
  std::vector<int64_t> confusion;  // [label * classes + predicted]; empty beyond kMaxConfusionClasses
  int64_t classes = 0;
  std::vector<Mistake> mistakes;  // at most kMaxMistakes, most confident first
};

inline constexpr int64_t kMaxConfusionClasses = 200;
inline constexpr size_t kMaxMistakes = 24;
inline constexpr size_t kMaxPictureBytes = 1 << 20;  // larger pictures are not put into evaluation.json

// batch: samples per forward pass. stop: polled between batches; true ends the evaluation with nullopt.
std::optional<EvaluationDetails> evaluate(Engine& engine, const data::Dataset& dataset, const data::BatchFiller& filler,
                                          int64_t classes, int64_t batch, const std::function<bool()>& stop);

// evaluation.json of docs/run-directory.md.
OrderedJson to_json(const EvaluationDetails& details, const data::Dataset& dataset);

}  // namespace skytrain::train
