// skytrain/observe/recipe_origins.h
//
// Where each value of a recipe came from, read back from recipe.yaml as recipe::explain() writes it:
// one key a line, nesting by indentation, lists of mappings as "- name:", the origin as a comment.

#pragma once
#include <map>
#include <string>
#include <string_view>

namespace skytrain::observe {

struct ExplainedValue {
  std::string value, origin;  // "64" and "recipe.yaml:14:10"
};

// Key path ("data.transforms[0].normalize.mean") -> value and origin. Lines of another form are passed over.
std::map<std::string, ExplainedValue> read_explained_recipe(std::string_view yaml);

}  // namespace skytrain::observe
