// What --explain prints, and the reference: two ways to show the declared keys to people.

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/recipe/scalar.h"
#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {
namespace {

struct Line {
  std::string text, comment;
};

// Comments start at one column, unless a line (a long path) is beyond it.
constexpr size_t kFurthestComment = 48;

std::string comment_of(const Resolved& resolved, const std::string& path) {
  const auto it = resolved.origins.find(path);
  if (it == resolved.origins.end()) return {};
  switch (it->second.kind) {
    case Origin::Kind::kFile:
    case Origin::Kind::kSet:
      return it->second.place;
    case Origin::Kind::kDefault:
      return "default";
    case Origin::Kind::kAuto:
      return "auto: " + it->second.place;
  }
  return {};
}

void add_lines(const Resolved& resolved, const OrderedJson& mapping, const std::string& path, const std::string& indent,
               std::vector<Line>* lines) {
  for (const auto& [name, value] : mapping.items()) {
    const std::string child = path.empty() ? name : path + "." + name;
    if (value.is_object()) {
      lines->push_back({indent + name + ":", {}});
      add_lines(resolved, value, child, indent + "  ", lines);
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      lines->push_back({indent + name + ":", {}});
      for (size_t i = 0; i < value.size(); ++i) {
        for (const auto& [element, keys] : value[i].items()) {
          lines->push_back({indent + "  - " + yaml_text(element) + ":", {}});
          add_lines(resolved, keys, str(child, "[", i, "].", element), indent + "      ", lines);
        }
      }
    } else {
      lines->push_back({indent + name + ": " + yaml_text(value), comment_of(resolved, child)});
    }
  }
}

std::string_view kind_name(Origin::Kind kind) {
  switch (kind) {
    case Origin::Kind::kFile:
      return "file";
    case Origin::Kind::kSet:
      return "set";
    case Origin::Kind::kDefault:
      return "default";
    case Origin::Kind::kAuto:
      return "auto";
  }
  return "default";
}

std::string table_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string yaml_text(const OrderedJson& leaf) {
  if (leaf.is_null()) return "null";
  if (leaf.is_string()) {
    const std::string& text = leaf.get_ref<const std::string&>();
    return needs_quotes(text) ? leaf.dump() : text;
  }
  if (leaf.is_number_float()) return shortest_double(leaf.get<double>());
  if (leaf.is_array()) {
    std::vector<std::string> items;
    for (const OrderedJson& item : leaf) items.push_back(yaml_text(item));
    return "[" + join(items, ", ") + "]";
  }
  return leaf.dump();
}

std::string explain(const Resolved& resolved) {
  std::vector<Line> lines;
  add_lines(resolved, to_json(resolved.recipe), "", "", &lines);
  size_t column = 0;
  for (const Line& line : lines) {
    if (!line.comment.empty()) column = std::max(column, std::min(line.text.size(), kFurthestComment));
  }
  std::string out;
  for (const Line& line : lines) {
    out += line.text;
    if (!line.comment.empty()) {
      out.append(line.text.size() < column ? column - line.text.size() : 0, ' ');
      out += "  # " + printable(line.comment, 500);
    }
    out += '\n';
  }
  return out;
}

OrderedJson explain_json(const Resolved& resolved) {
  OrderedJson origins = OrderedJson::object();
  for (const auto& [path, origin] : resolved.origins) {
    origins[path] = {{"kind", kind_name(origin.kind)}, {"place", origin.place}};
  }
  OrderedJson out;
  out["recipe"] = to_json(resolved.recipe);
  out["origins"] = std::move(origins);
  return out;
}

std::string reference_markdown() {
  std::string out = "| key | type | default | meaning |\n|---|---|---|---|\n";
  recipe_section().document("", [&](const KeyDoc& doc) {
    std::string help = doc.help;
    if (!doc.only_for.empty()) help = join(doc.only_for, ", ") + ": " + help;
    const std::string default_text = doc.default_text.empty()         ? "–"
                                     : doc.default_text == "required" ? "required"
                                                                      : "`" + doc.default_text + "`";
    out += "| `" + doc.path + "` | " + table_cell(doc.type) + " | " + table_cell(default_text) + " | " +
           table_cell(help) + " |\n";
  });
  return out;
}

}  // namespace skytrain::recipe
