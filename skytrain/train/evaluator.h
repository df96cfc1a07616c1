// skytrain/train/evaluator.h
//
// Loss and metrics over a whole data set: every sample once, equal weights, whatever the batch size or the number of
// replicas.

#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/evaluation_counts.h"
#include "skytrain/train/evaluation_set.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

struct EvaluationDetails {
  Evaluation result;               // step and seconds are the caller's to fill
  std::vector<int64_t> confusion;  // [label * classes + predicted]; empty beyond kMaxConfusionClasses, or of values
  int64_t classes = 0;             // 0: the targets are values
  std::vector<Mistake> mistakes;   // at most kMaxMistakes, most confident first
};

inline constexpr size_t kMaxPictureBytes = 1 << 20;  // larger pictures are not put into evaluation.json

// Evaluates the engine's model, with the running mean of its weights where there is one. The loss is the engine's,
// without label smoothing. outputs: of the model for a sample. batch: samples per forward pass. stop: polled between
// batches; true ends the evaluation with nullopt.
// Samples that are left out don't count; Error(kData) when none is left.
std::optional<EvaluationDetails> evaluate(Engine& engine, const EvaluationSet& set, int64_t outputs, int64_t batch,
                                          const std::function<bool()>& stop);

// The same in smaller batches, which do not change its result, when one does not fit the memory budget: `batch` is
// halved then, and `note` told. Throws Error(kEnvironment) when a single sample does not fit.
std::optional<EvaluationDetails> evaluate_within_memory(Engine& engine, const EvaluationSet& set, int64_t outputs,
                                                        int64_t& batch, const std::function<bool()>& stop,
                                                        const std::function<void(const std::string&)>& note);

// evaluation.json of docs/run-directory.md.
OrderedJson to_json(const EvaluationDetails& details, const data::Dataset& dataset);

}  // namespace skytrain::train
