// skytrain/recipe/resolve.h
//
// YAML text and --set overrides -> a checked Recipe, with the origin of every value.
//
// Every error is an Error(kRecipe) with "file:line:column: key.path" (or "--set key=value") as its place and the known
// names as its hint; unknown keys and names get "did you mean". All errors of a file are found in one pass: the first
// is thrown, and its hint counts the others.

#pragma once
#include <map>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::recipe {

struct Origin {
  enum class Kind { kFile, kSet, kDefault, kAuto } kind = Kind::kDefault;
  std::string place;  // "recipe.yaml:14:12", "--set train.batch=128", "", or the reason of an auto decision
};

struct Resolved {
  Recipe recipe;
  std::string file;  // as given on the command line
  std::map<std::string, Origin>
      origins;  // key path ("train.optimizer.lr", "data.transforms[0].normalize.mean") -> origin
};

// overrides: "key.path=value" each, the value in YAML's syntax; a later one wins, and `steps` wins over `epochs` of the
// file (and the other way round). Data paths from the file are relative to the file's folder, from --set to the current
// folder.
Resolved resolve_file(FileSystem& fs, const std::string& path, const std::vector<std::string>& overrides);
Resolved resolve_text(const std::string& yaml, const std::string& file_name, const std::string& base_folder,
                      const std::vector<std::string>& overrides);

// Records a decision that `auto` took (also in recipe by the caller).
void record_auto(Resolved& resolved, const std::string& key, const std::string& reason);

// The resolved recipe as JSON with every key present that its names take, in the order of the documentation. `auto`
// that nobody has decided is the string "auto", an absent optional null. from_json(to_json(r)) == r; from_json refuses
// unknown keys (kRecipe).
OrderedJson to_json(const Recipe& recipe);
Recipe from_json(const Json& json);

// As YAML with a comment that gives each value's origin: what --explain prints and what the run directory keeps.
std::string explain(const Resolved& resolved);
// The same for machines: {"recipe": to_json, "origins": {"train.batch": {"kind": "file", "place": "…"}}}.
OrderedJson explain_json(const Resolved& resolved);

// Every key with type, default and one line of help, as Markdown: docs/recipe.md is made from it and a test compares.
std::string reference_markdown();

// What must be equal for one run to be the continuation of another: the recipe without what may change between
// attempts (name, data paths, checkpoint.*, eval.*, devices, and what auto decides), hashed.
std::string fingerprint(const Recipe& recipe);
// Key paths in which two recipes differ in that respect, with both values ("train.batch: 64, was 32" for a: 32, b: 64):
// for a refusal to resume. `auto` on one side agrees with any decision on the other.
std::vector<std::string> differences(const Recipe& a, const Recipe& b);

}  // namespace skytrain::recipe
