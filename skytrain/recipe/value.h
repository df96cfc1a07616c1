// skytrain/recipe/value.h
//
// What a recipe says before it is typed: a tree of texts, lists and mappings in which every value knows where it was
// written. The file, --set and JSON all become this tree, and one reader types it.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::recipe {

// Where a value was written.
struct Place {
  enum class Source { kFile, kSet, kJson, kNowhere } source = Source::kNowhere;
  size_t override_index = 0;  // kSet: which of the overrides
  int line = 0, column = 0;   // kFile: counted from 1
};

// What places refer to.
struct Sources {
  std::string file;                    // as shown to people
  std::string base_folder;             // against which relative paths of the file are
  std::vector<std::string> overrides;  // "train.batch=8"

  // "recipe.yaml:14:12", "--set train.batch=8", "resolved recipe".
  std::string describe(const Place& place) const;
};

struct Value {
  enum class Kind { kNull, kText, kList, kMap } kind = Kind::kNull;
  std::string text;
  bool quoted = false;  // written in quotes: never a number, a boolean or null
  std::vector<Value> items;
  struct Member;
  std::vector<Member> members;  // in the order of the file; names are unique
  Place place;

  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  std::string describe() const;  // for messages: "a list", "\"abc\""
};

struct Value::Member {
  std::string name;
  Place place;  // of the name
  Value value;
};

Value value_from_json(const Json& json);

// The YAML text of one document. Throws Error(kRecipe) for everything that is not one well-formed tree: syntax, tabs as
// indentation, duplicate keys, tags, several documents, cycles and floods of aliases, wrong encoding.
// place: where positions start; for kSet every value gets just that place.
Value read_yaml(std::string_view text, const Place& place, const Sources& sources);

// Applies override `index` of sources ("train.optimizer.lr=1e-3", "data.transforms[0].normalize.mean=[0.5]") to root.
void apply_override(Value& root, size_t index, const Sources& sources);

}  // namespace skytrain::recipe
