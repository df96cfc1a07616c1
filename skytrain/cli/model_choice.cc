#include "skytrain/cli/model_choice.h"

#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/cli/absolute_path.h"
#include "skytrain/cli/resume.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {
namespace {

bool is_folder(const FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info && info->type == FileInfo::Type::kDirectory;
}

// The step of the best evaluation, as the newest checkpoint remembers it.
uint64_t best_step(const FileSystem& fs, const std::string& newest) {
  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, newest);
  const Json none = Json::object();
  const Json run = manifest.state.is_object() ? manifest.state.value("run", none) : none;
  if (!run.contains("best") || !run["best"].contains("step"))
    throw Error(ErrorKind::kUsage, "--best", "this run did not follow its best evaluation",
                "a recipe with checkpoint.best: top1 does; --step takes any checkpoint that is there");
  return run["best"]["step"].get<uint64_t>();
}

std::string checkpoint_of(const FileSystem& fs, const record::RunDirectory& run, const ModelRequest& request,
                          std::vector<std::string>* notes) {
  std::vector<checkpoint::Candidate> skipped;
  const auto newest = checkpoint::find_newest_valid(fs, run.checkpoints(), &skipped);
  for (const checkpoint::Candidate& candidate : skipped)
    notes->push_back(str("passed over ", candidate.path, ": ", candidate.reason));
  if (!newest)
    throw Error(ErrorKind::kData, run.checkpoints(), "holds no valid checkpoint",
                "the run has saved nothing yet, or name a file of weights with --weights");
  if (!request.step && !request.best) return newest->path;
  const uint64_t step = request.best ? best_step(fs, newest->path) : *request.step;
  std::vector<std::string> steps;
  for (const checkpoint::Candidate& candidate : checkpoint::list_checkpoints(fs, run.checkpoints(), /*hash=*/false)) {
    if (!candidate.valid) continue;
    if (candidate.step == step) return candidate.path;
    steps.push_back(std::to_string(candidate.step));
  }
  throw Error(ErrorKind::kUsage, request.best ? "--best" : "--step", str("there is no checkpoint of step ", step),
              "there are steps " + join(steps, ", "));
}

}  // namespace

ModelChoice choose_model(FileSystem& fs, const ModelRequest& request) {
  if ((request.step ? 1 : 0) + (request.best ? 1 : 0) + (request.weights.empty() ? 0 : 1) > 1)
    throw Error(ErrorKind::kUsage, "--step, --best, --weights", "say different things: give one of them");
  ModelChoice choice;
  std::string path = absolute_path(request.model);
  const auto info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kUsage, request.model, "there is no such file or folder");

  std::string recipe_file = path, checkpoint;
  if (info->type == FileInfo::Type::kDirectory) {
    if (fs.exists(path + "/manifest.json")) {
      checkpoint = path;
      path = std::filesystem::path(path).parent_path().parent_path().string();
      if (request.step || request.best)
        throw Error(ErrorKind::kUsage, request.model, "is a checkpoint already", "leave out --step and --best");
    }
    const record::RunDirectory run(path);
    if (!fs.exists(run.run_json()))
      throw Error(ErrorKind::kUsage, request.model, "is neither a run directory nor a checkpoint of one",
                  "run directories are runs/<name>/<UTC time>, as `skytrain train` names them");
    recipe_file = run.recipe_yaml();
    if (checkpoint.empty() && request.weights.empty()) checkpoint = checkpoint_of(fs, run, request, &choice.notes);
  } else if (request.step || request.best) {
    throw Error(ErrorKind::kUsage, request.model, "is a recipe, which has no checkpoints",
                "name a run directory, or a file of weights with --weights");
  }
  choice.recipe = recipe::resolve_file(fs, recipe_file, request.sets).recipe;
  if (recipe_file != path) {  // what auto decided for the run; devices are those of this machine
    const recipe::Recipe trained = stored_recipe(fs, record::RunDirectory(path));
    recipe::TrainSpec& train = choice.recipe.train;
    if (train.precision == "auto") train.precision = trained.train.precision;
    if (train.memory_format == "auto") train.memory_format = trained.train.memory_format;
  }
  if (!request.weights.empty()) {
    if (is_folder(fs, request.weights) || !fs.exists(request.weights))
      throw Error(ErrorKind::kUsage, "--weights", request.weights + " is no file");
    choice.recipe.model.init = absolute_path(request.weights);
    choice.recipe.model.init_except.clear();  // of the weights that training began with
    checkpoint.clear();
  }
  choice.checkpoint = checkpoint;
  return choice;
}

}  // namespace skytrain::cli
