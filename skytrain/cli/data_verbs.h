// skytrain/cli/data_verbs.h
//
// The verbs below `skytrain data`, one file each.

#pragma once
#include "skytrain/cli/verb.h"

namespace skytrain::cli {

void add_data_inspect(CLI::App& data, Actions& actions);
void add_data_pack(CLI::App& data, Actions& actions);
void add_data_bench(CLI::App& data, Actions& actions);

}  // namespace skytrain::cli
