// skytrain/cli/env_verbs.h
//
// The verbs below `skytrain env`.

#pragma once
#include "skytrain/cli/verb.h"

namespace skytrain::cli {

void add_env_topology(CLI::App& app, Actions& actions);

}  // namespace skytrain::cli
