// skytrain/train/run_summary.h
//
// What a run says of itself at its end: the worker's part of summary.json (docs/run-directory.md).

#pragma once
#include <cstdint>
#include <optional>

#include "skytrain/base/json.h"
#include "skytrain/data/bad_samples.h"
#include "skytrain/data/dataset.h"
#include "skytrain/data/read_ahead.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/engine.h"
#include "skytrain/train/run_checkpoints.h"
#include "skytrain/train/run_state.h"

namespace skytrain::train {

// A data set of the run, as it was used.
struct UsedData {
  const data::DatasetInfo& info;
  const data::BadSamples& bad;
};

// interrupted: the run was stopped on request. samples: consumed. recipe: with auto decided. input: of the pipeline
// that made batches ahead, if there was one.
OrderedJson run_summary(bool interrupted, const RunState& state, uint64_t samples, const recipe::Recipe& recipe,
                        Engine& engine, const std::optional<data::ReadAhead::Figures>& input,
                        const RunCheckpoints::Figures& saving, const UsedData& train,
                        const std::optional<UsedData>& eval);

}  // namespace skytrain::train
