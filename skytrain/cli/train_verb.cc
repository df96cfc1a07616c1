#include <memory>

#include "skytrain/cli/train.h"
#include "skytrain/cli/verb.h"

namespace skytrain::cli {

void add_train(CLI::App& app, Actions& actions) {
  auto flags = std::make_shared<TrainFlags>();
  app.add_option("RECIPE", flags->recipe, "The recipe, a YAML file")->required()->type_name("FILE");
  // One value a flag: `--set a=1 recipe.yaml` must not swallow the recipe.
  app.add_option("--set", flags->sets, "Override a value of the recipe: key.path=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--runs", flags->runs, "Folder of runs")->capture_default_str()->type_name("DIR");
  app.add_option("--resume", flags->resume,
                 "auto: go on with the newest run of this recipe; never: a new run; or a run directory, which a longer "
                 "recipe extends")
      ->capture_default_str()
      ->type_name("auto|never|RUN_DIR");
  app.add_option("--log-every", flags->log_every, "Steps between lines of metrics.jsonl (default: about one a second)")
      ->type_name("N")
      ->check([](const std::string& text) {
        // CLI11 takes -3, and what does not fit, for a huge number.
        const bool digits = text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
        return digits && text.find_first_not_of('0') != text.npos ? "" : "\"" + text + "\" is no number of 1 or more";
      });
  app.add_flag("--explain", flags->explain, "Print the resolved recipe and where each value came from, and end");
  app.add_flag("--dry-run", flags->dry_run, "Tell what would be done, and end; writes nothing");
  app.add_flag("--json", flags->json, "Print the result as JSON, as the last line of stdout");
  app.add_flag("-q,--quiet", flags->quiet, "Only warnings and errors");
  actions[&app] = [flags] { return train(*flags); };
}

}  // namespace skytrain::cli
