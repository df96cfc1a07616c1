#include "skytrain/recipe/resolve.h"

#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/recipe/sections.h"
#include "skytrain/recipe/value.h"

namespace skytrain::recipe {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;

// "" or "did you mean "recipes/mnist.yaml"?", from the neighbours of a file that isn't there.
std::string neighbours_hint(const FileSystem& fs, const std::filesystem::path& path) {
  const std::string folder = path.parent_path().empty() ? "." : path.parent_path().string();
  try {
    const auto info = fs.stat(folder);
    if (!info || info->type != FileInfo::Type::kDirectory) return "there is no folder " + folder;
    std::vector<std::string> recipes;
    for (const std::string& name : fs.list(folder)) {
      if (name.ends_with(".yaml") || name.ends_with(".yml")) recipes.push_back(name);
    }
    if (const std::string near = closest(path.filename().string(), recipes); !near.empty()) {
      return "did you mean \"" + (path.parent_path() / near).string() + "\"?";
    }
    if (recipes.size() > 8) recipes.resize(8);
    return recipes.empty() ? "" : "recipes there: " + join(recipes, ", ");
  } catch (const Error&) {
    return {};  // a hint is no reason for a second failure
  }
}

Recipe read_tree(const Value& tree, Reader& reader) {
  Recipe recipe;
  recipe_section().read(tree, reader, &recipe);
  reader.throw_problems();
  return recipe;
}

}  // namespace

Resolved resolve_file(FileSystem& fs, const std::string& path, const std::vector<std::string>& overrides) {
  const auto info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kRecipe, path, "no such file", neighbours_hint(fs, path));
  if (info->type == FileInfo::Type::kDirectory) {
    throw Error(ErrorKind::kRecipe, path, "is a folder, expected a recipe file",
                neighbours_hint(fs, std::filesystem::path(path) / "recipe.yaml"));
  }
  const auto refuse_size = [&](uint64_t size) {
    if (size <= kMaxFileBytes) return;
    throw Error(ErrorKind::kRecipe, path,
                str("is ", human_bytes(static_cast<double>(size)), ", and a recipe has at most 1 MiB"),
                "is this the recipe, or a data file?");
  };
  refuse_size(info->size);
  const std::string text = fs.read_file(path);
  refuse_size(text.size());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return resolve_text(text, path, folder.empty() ? "." : folder, overrides);
}

Resolved resolve_text(const std::string& yaml, const std::string& file_name, const std::string& base_folder,
                      const std::vector<std::string>& overrides) {
  const Sources sources{file_name, base_folder, overrides};
  Value tree = read_yaml(yaml, Place{Place::Source::kFile, 0, 1, 1}, sources);
  if (tree.kind == Value::Kind::kNull) {
    throw Error(ErrorKind::kRecipe, file_name, "is empty", "a recipe starts with `version: 1`; see docs/recipe.md");
  }
  if (tree.kind != Value::Kind::kMap) {
    throw Error(ErrorKind::kRecipe, sources.describe(tree.place),
                "is " + tree.describe() + ", expected a mapping of keys",
                "a recipe starts with `version: 1`; see docs/recipe.md");
  }
  for (size_t i = 0; i < overrides.size(); ++i) apply_override(tree, i, sources);
  Reader reader(sources);
  Resolved resolved;
  resolved.recipe = read_tree(tree, reader);
  resolved.file = file_name;
  resolved.origins = reader.take_origins();
  if (resolved.recipe.train.length.unit == Duration::Unit::kSteps) resolved.origins.erase("train.epochs");
  return resolved;
}

void record_auto(Resolved& resolved, const std::string& key, const std::string& reason) {
  resolved.origins[key] = Origin{Origin::Kind::kAuto, reason};
}

OrderedJson to_json(const Recipe& recipe) { return recipe_section().write(recipe); }

Recipe from_json(const Json& json) {
  const Sources sources;
  Reader reader(sources);
  return read_tree(value_from_json(json), reader);
}

}  // namespace skytrain::recipe
