#include "skytrain/recipe/value.h"

#include <charconv>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::recipe {
namespace {

struct Step {
  std::string name;  // of a member, or
  size_t index = 0;  // of an item when `name` is empty
};

// "data.transforms[0].normalize" -> steps; empty when the text is no path.
std::vector<Step> parse_path(std::string_view text) {
  std::vector<Step> steps;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find_first_of(".[", at), text.size());
    if (end == at) return {};
    steps.push_back({std::string(text.substr(at, end - at)), 0});
    at = end;
    while (at < text.size() && text[at] == '[') {
      size_t index = 0;
      const auto [stop, code] = std::from_chars(text.data() + at + 1, text.data() + text.size(), index);
      at = static_cast<size_t>(stop - text.data());
      if (code != std::errc() || at >= text.size() || text[at] != ']') return {};
      steps.push_back({"", index});
      ++at;
    }
    if (at < text.size()) {
      if (text[at] != '.' || at + 1 == text.size()) return {};
      ++at;
    }
  }
  return steps;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string Sources::describe(const Place& place) const {
  switch (place.source) {
    case Place::Source::kFile:
      return str(file, ":", place.line, ":", place.column);
    case Place::Source::kSet:
      return "--set " + overrides[place.override_index];
    case Place::Source::kJson:
      return "resolved recipe";
    case Place::Source::kNowhere:
      return file;
  }
  return file;
}

const Value* Value::find(std::string_view name) const {
  for (const Member& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

Value* Value::find(std::string_view name) { return const_cast<Value*>(std::as_const(*this).find(name)); }

std::string Value::describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kText:
      return "\"" + printable(text, 80) + "\"";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a mapping";
  }
  return {};
}

Value value_from_json(const Json& json) {
  Value value;
  value.place.source = Place::Source::kJson;
  if (json.is_object()) {
    value.kind = Value::Kind::kMap;
    for (const auto& [name, child] : json.items()) {
      value.members.push_back({name, value.place, value_from_json(child)});
    }
  } else if (json.is_array()) {
    value.kind = Value::Kind::kList;
    for (const Json& child : json) value.items.push_back(value_from_json(child));
  } else if (json.is_string()) {
    value.kind = Value::Kind::kText;
    value.text = json.get<std::string>();
    value.quoted = true;
  } else if (!json.is_null()) {
    value.kind = Value::Kind::kText;
    value.text = json.dump();
  }
  return value;
}

void apply_override(Value& root, size_t index, const Sources& sources) {
  const std::string& text = sources.overrides[index];
  const Place place{Place::Source::kSet, index};
  const auto refuse = [&](const std::string& what, const std::string& hint = {}) {
    throw Error(ErrorKind::kRecipe, sources.describe(place), what, hint);
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse("has no value", "write --set key.path=value, like --set train.batch=128");
  const std::vector<Step> steps = parse_path(trim(std::string_view(text).substr(0, equals)));
  if (steps.empty()) {
    refuse("does not start with a key path",
           "write --set key.path=value, like --set data.transforms[0].pad_crop.pad=2");
  }
  const std::string_view value_text = trim(std::string_view(text).substr(equals + 1));
  if (value_text.empty()) refuse("has no value after \"=\"", "write null for \"none\", '\"\"' for an empty text");
  Value value = read_yaml(value_text, place, sources);

  Value* at = &root;
  std::string path;
  for (const Step& step : steps) {
    if (!step.name.empty()) {
      if (at->kind == Value::Kind::kNull) {
        *at = Value{.kind = Value::Kind::kMap, .place = place};
      }
      if (at->kind != Value::Kind::kMap) refuse(str(path, " is ", at->describe(), ", which has no keys"));
      Value* next = at->find(step.name);
      if (next == nullptr) {
        at->members.push_back({step.name, place, Value{.place = place}});
        next = &at->members.back().value;
      }
      at = next;
      path += (path.empty() ? "" : ".") + step.name;
    } else {
      if (at->kind != Value::Kind::kList) refuse(str(path, " is ", at->describe(), ", not a list"));
      if (step.index >= at->items.size()) {
        refuse(str(path, " has ", at->items.size(), " elements; the first is [0]"), "replace the whole list instead");
      }
      at = &at->items[step.index];
      path += str("[", step.index, "]");
    }
  }
  *at = std::move(value);
}

}  // namespace skytrain::recipe
