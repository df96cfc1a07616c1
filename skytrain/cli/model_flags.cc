#include "skytrain/cli/model_flags.h"

namespace skytrain::cli {

void add_model_flags(CLI::App& app, ModelRequest& request) {
  app.add_option("MODEL", request.model, "A run directory, a checkpoint of one, or a recipe (with --weights)")
      ->required()
      ->type_name("RUN_DIR|CHECKPOINT|RECIPE");
  app.add_option("--set", request.sets, "Override a value of the recipe: key.path=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option_function<uint64_t>(
         "--step", [&request](const uint64_t& step) { request.step = step; },
         "The checkpoint of this step (default: the newest)")
      ->type_name("N");
  app.add_flag("--best", request.best, "The checkpoint of the best evaluation, which checkpoint.best keeps");
  app.add_option("--weights", request.weights, "A file of weights (.pt, .pth, .safetensors) in place of a checkpoint")
      ->type_name("FILE");
}

}  // namespace skytrain::cli
