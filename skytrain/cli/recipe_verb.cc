#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/recipe/resolve.h"

namespace skytrain::cli {

void add_recipe(CLI::App& app, Actions& actions) {
  actions[&app] = [] {
    print_result(recipe::reference_markdown());
    return 0;
  };
}

}  // namespace skytrain::cli
