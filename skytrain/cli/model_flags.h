// skytrain/cli/model_flags.h
//
// The flags by which verbs are told of a trained model.

#pragma once
#include <CLI/App.hpp>

#include "skytrain/cli/model_choice.h"

namespace skytrain::cli {

// request must outlive app.
void add_model_flags(CLI::App& app, ModelRequest& request);

}  // namespace skytrain::cli
