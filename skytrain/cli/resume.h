// skytrain/cli/resume.h
//
// Which run `skytrain train` works on: a new one, or one that is there already. Reads the disk, writes nothing.

#pragma once
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {

struct Resume {
  enum class Mode { kAuto, kNever, kDirectory } mode = Mode::kAuto;
  std::string directory;  // of kDirectory
};
// "auto", "never", or a run directory.
Resume parse_resume(const std::string& text);

struct RunChoice {
  std::optional<record::RunDirectory> run;  // none: a new run
  bool complete = false;                    // nothing is left to do
  bool extended = false;                    // longer than the stored recipe says
  bool recipe_changed = false;              // the stored recipe is to be replaced by this one
  recipe::Resolved resolved;                // what to train, with what `auto` has decided for this run already
  std::vector<std::string> notes;           // for people, one line each
};

// What the run is made of, with every auto decided. Throws Error(kData) when recipe.json is not as skytrain wrote it.
recipe::Recipe stored_recipe(const FileSystem& fs, const record::RunDirectory& run);

// kAuto: the newest run below <runs>/<name> that this recipe continues, else a new one.
RunChoice choose_run(const FileSystem& fs, const std::string& runs, const Resume& resume,
                     const recipe::Resolved& wanted);

// Whether `wanted` continues `run`. It may differ in what recipe::differences() passes over, and may be longer.
// Throws Error(kUsage) when it is no run, Error(kRecipe) that lists the differences when they are two different runs.
RunChoice examine_run(const FileSystem& fs, const record::RunDirectory& run, const recipe::Resolved& wanted);

}  // namespace skytrain::cli
