// skytrain/train/init_weights.h
//
// Weights to start from: a state dict in any of the formats of weights/weights.h.

#pragma once
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/model/model.h"

namespace skytrain::train {

// Copies the file's arrays into the model's parameters and buffers of the same names; floating-point dtypes are
// converted. Names that match one of `except` (shell patterns) keep the model's own values, and may be missing or of
// another shape. Counts of batches (num_batches_tracked), which old files lack, may be missing too. Every other
// difference is refused with Error(kData) that lists them by name and shape, and nothing is changed then. Throws
// Error(kRecipe) for a pattern that matches nothing. Returns lines for people: what was found where.
std::vector<std::string> load_init_weights(const FileSystem& fs, const std::string& path,
                                           const std::vector<std::string>& except, model::Model& model);

}  // namespace skytrain::train
