#include "skytrain/cli/resume.h"

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::cli {
namespace {

using recipe::Duration;
using recipe::Recipe;

constexpr const char* kDecidedBefore = "decided when the run began";

bool says_complete(const FileSystem& fs, const record::RunDirectory& run) {
  if (!fs.exists(run.summary())) return false;
  try {
    const Json summary = parse_json(fs.read_file(run.summary()), run.summary());
    return summary.is_object() && summary.value("status", Json()) == "complete";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    return false;  // damaged: going on from the last checkpoint writes it anew
  }
}

// `wanted` differs from `stored` in its length alone.
bool only_the_length_differs(const Recipe& stored, const Recipe& wanted) {
  Recipe as_long = wanted;
  as_long.train.length = stored.train.length;
  return !(stored.train.length == wanted.train.length) && recipe::differences(stored, as_long).empty();
}

// Whether data elsewhere are the same only a worker can tell, by their fingerprint.
bool same_data_paths(const Recipe& a, const Recipe& b) {
  const auto evaluation = [](const Recipe& r) { return r.data.eval ? r.data.eval->path : std::string(); };
  return a.data.train.path == b.data.train.path && evaluation(a) == evaluation(b);
}

bool is_longer(const Duration& a, const Duration& b) { return a.unit == b.unit && a.value > b.value; }

// What `auto` decided when the run began is decided for good: a slot of another size would be another training.
void replay_decisions(const Recipe& stored, recipe::Resolved& resolved) {
  Recipe& r = resolved.recipe;
  if (!r.train.slot && stored.train.slot) {
    r.train.slot = stored.train.slot;
    recipe::record_auto(resolved, "train.slot", kDecidedBefore);
  }
  if (r.train.precision == "auto" && stored.train.precision != "auto") {
    r.train.precision = stored.train.precision;
    recipe::record_auto(resolved, "train.precision", kDecidedBefore);
  }
  if (r.train.memory_format == "auto" && stored.train.memory_format != "auto") {
    r.train.memory_format = stored.train.memory_format;
    recipe::record_auto(resolved, "train.memory_format", kDecidedBefore);
  }
  if (r.train.batch == 0 && stored.train.batch > 0) {
    r.train.batch = stored.train.batch;
    recipe::record_auto(resolved, "train.batch", kDecidedBefore);
  }
  if (!r.devices && stored.devices) {
    r.devices = stored.devices;
    recipe::record_auto(resolved, "devices", kDecidedBefore);
  }
}

RunChoice continuation(const FileSystem& fs, const record::RunDirectory& run, const Recipe& stored,
                       const recipe::Resolved& wanted, bool extended) {
  RunChoice choice;
  choice.run = run;
  choice.extended = extended;
  choice.complete = !extended && same_data_paths(stored, wanted.recipe) && says_complete(fs, run);
  choice.resolved = wanted;
  replay_decisions(stored, choice.resolved);
  choice.recipe_changed = recipe::to_json(stored) != recipe::to_json(choice.resolved.recipe);
  if (extended) {
    choice.notes.push_back(str("extending the run from ", recipe::to_string(stored.train.length), " to ",
                               recipe::to_string(wanted.recipe.train.length)));
    if (wanted.recipe.train.schedule.name != "constant") {
      choice.notes.push_back(str("the ", wanted.recipe.train.schedule.name,
                                 " schedule now spans the longer run: the learning rate jumps where training goes on"));
    }
  }
  return choice;
}

RunChoice new_run(const recipe::Resolved& wanted) {
  RunChoice choice;
  choice.resolved = wanted;
  return choice;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Recipe stored_recipe(const FileSystem& fs, const record::RunDirectory& run) {
  const std::string path = run.recipe_json();
  try {
    return recipe::from_json(parse_json(fs.read_file(path), path));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRecipe) throw;
    throw Error(ErrorKind::kData, path, error.message(),
                "it is not as skytrain wrote it: start a new run, --resume never");
  }
}

Resume parse_resume(const std::string& text) {
  if (text == "auto") return {Resume::Mode::kAuto, ""};
  if (text == "never") return {Resume::Mode::kNever, ""};
  if (text.empty()) {
    throw Error(ErrorKind::kUsage, "--resume", "is empty", "give auto, never, or a run directory");
  }
  return {Resume::Mode::kDirectory, without_trailing_slashes(text)};
}

RunChoice choose_run(const FileSystem& fs, const std::string& runs, const Resume& resume,
                     const recipe::Resolved& wanted) {
  if (resume.mode == Resume::Mode::kNever) return new_run(wanted);
  if (resume.mode == Resume::Mode::kDirectory) return examine_run(fs, record::RunDirectory(resume.directory), wanted);

  std::vector<std::string> notes;
  for (const record::RunDirectory& run : record::find_runs(fs, runs, wanted.recipe.name, &notes)) {
    std::optional<Recipe> stored;
    try {
      stored = stored_recipe(fs, run);
    } catch (const Error& error) {
      notes.push_back("passed over: " + error.message());
      continue;
    }
    if (recipe::differences(*stored, wanted.recipe).empty()) {
      RunChoice choice = continuation(fs, run, *stored, wanted, /*extended=*/false);
      choice.notes.insert(choice.notes.begin(), notes.begin(), notes.end());
      return choice;
    }
    if (only_the_length_differs(*stored, wanted.recipe) &&
        is_longer(wanted.recipe.train.length, stored->train.length)) {
      notes.push_back(str(run.path(), " is the same run, only shorter (", recipe::to_string(stored->train.length),
                          "): --resume ", run.path(), " extends it"));
    }
  }
  RunChoice choice = new_run(wanted);
  choice.notes = std::move(notes);
  return choice;
}

RunChoice examine_run(const FileSystem& fs, const record::RunDirectory& run, const recipe::Resolved& wanted) {
  if (!fs.exists(run.recipe_json())) {
    throw Error(ErrorKind::kUsage, run.path(),
                fs.exists(run.path()) ? "is no run directory: it has no recipe.json" : "there is no such run directory",
                "run directories are <runs>/<name>/<UTC time>; --resume auto finds the newest");
  }
  const Recipe stored = stored_recipe(fs, run);
  const std::vector<std::string> differences = recipe::differences(stored, wanted.recipe);
  if (differences.empty()) return continuation(fs, run, stored, wanted, /*extended=*/false);
  if (only_the_length_differs(stored, wanted.recipe) && is_longer(wanted.recipe.train.length, stored.train.length)) {
    return continuation(fs, run, stored, wanted, /*extended=*/true);
  }
  throw Error(ErrorKind::kRecipe, run.path(), "this recipe is not the one that the run was started with",
              join(differences, "\n") +
                  "\nmake them equal again (only a longer run may differ), or start a new run with --resume never");
}

}  // namespace skytrain::cli
