// skytrain/train/model_source.h
//
// A trained model for other uses than training: from a checkpoint, or from a file of weights.

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/train/evaluator.h"

namespace skytrain::train {

// Which weights of which model.
struct ModelSource {
  recipe::Recipe recipe;
  std::string checkpoint;  // a committed checkpoint's folder; "": recipe.model.init, which must be given
};

using TellNote = std::function<void(const std::string& line)>;

// Loss and metrics of the model on recipe.data.eval, with the running mean of its weights where the recipe has one.
// nullopt when `stop` said so. result.step: of the checkpoint. Throws Error: kRecipe without data.eval or weights,
// kData for damaged files or weights that don't fit.
struct EvaluationOutcome {
  EvaluationDetails details;
  OrderedJson json;  // evaluation.json of docs/run-directory.md
  int64_t parameters = 0;
};
std::optional<EvaluationOutcome> evaluate_model(FileSystem& fs, const ModelSource& source, const TellNote& note,
                                                const std::function<bool()>& stop);

// Writes the model as TorchScript to `output`, in evaluation mode.
void write_torchscript(FileSystem& fs, const ModelSource& source, const TellNote& note, const std::string& output);

}  // namespace skytrain::train
