// skytrain/cli/model_choice.h
//
// Which trained model a verb is about: a run and one of its checkpoints, a checkpoint, or a recipe and a file of
// weights. Reads the disk, writes nothing.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::cli {

struct ModelRequest {
  std::string model;              // a run directory, a checkpoint's folder, or a recipe
  std::vector<std::string> sets;  // key.path=value
  std::optional<uint64_t> step;   // of the run's checkpoint; none: the newest valid one
  bool best = false;              // that of the best evaluation (checkpoint.best)
  std::string weights;            // a file that replaces the checkpoint; "": none
};

struct ModelChoice {
  recipe::Recipe recipe;           // model.init is request.weights, where given
  std::string checkpoint;          // absolute; "": recipe.model.init holds the weights
  std::vector<std::string> notes;  // for people
};

// Throws Error(kUsage) for what is none of the three, a step without checkpoint (naming those that are there) and for
// flags that exclude each other; what reading recipes and checkpoints throws.
ModelChoice choose_model(FileSystem& fs, const ModelRequest& request);

}  // namespace skytrain::cli
