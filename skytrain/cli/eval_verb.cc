#include <memory>

#include "skytrain/base/console.h"
#include "skytrain/base/log.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/ask_worker.h"
#include "skytrain/cli/metric_text.h"
#include "skytrain/cli/model_choice.h"
#include "skytrain/cli/model_flags.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/recipe/resolve.h"

namespace skytrain::cli {
namespace {

struct EvalFlags {
  ModelRequest request;
  bool json = false, quiet = false;
};

int evaluate(const EvalFlags& flags) {
  const ModelChoice choice = choose_model(FileSystem::real(), flags.request);
  for (const std::string& note : choice.notes) log_warning(note);
  const Json summary = ask_worker(proto::Evaluate{recipe::to_json(choice.recipe), choice.checkpoint}, flags.quiet);
  OrderedJson out;
  out["model"] = choice.checkpoint.empty() ? *choice.recipe.model.init : choice.checkpoint;
  if (choice.recipe.data.eval) out["data"] = choice.recipe.data.eval->path;
  for (const char* key : {"step", "loss", "top1", "top5", "f1", "accuracy", "rmse", "samples", "seconds", "parameters"})
    if (summary.contains(key)) out[key] = summary[key];
  if (flags.json) {
    for (const char* key : {"classes", "confusion"})
      if (summary.contains(key) && !summary[key].empty()) out[key] = summary[key];
    print_json(out);
    return 0;
  }
  TwoColumns table;
  table.row("model", printable(out["model"].get<std::string>(), 500));
  if (out.contains("step")) table.row("step", human_count(out["step"].get<double>()));
  table.row("samples", human_count(out["samples"].get<double>()));
  table.row("loss", formatted("%.4f", out["loss"].get<double>()));
  for (const auto& [key, value] : out.items())
    if (const std::string title = metric_title(key); !title.empty())
      table.row(title, metric_value(key, value.get<double>()));
  print_result(table.text());
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Actions& actions) {
  auto flags = std::make_shared<EvalFlags>();
  add_model_flags(app, flags->request);
  app.add_flag("--json", flags->json, "Print the result as one JSON document, with the confusion matrix");
  app.add_flag("-q,--quiet", flags->quiet, "Only warnings and errors");
  actions[&app] = [flags] { return evaluate(*flags); };
}

}  // namespace skytrain::cli
