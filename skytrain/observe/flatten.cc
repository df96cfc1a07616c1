#include "skytrain/observe/flatten.h"

#include <algorithm>

#include "skytrain/base/text.h"

namespace skytrain::observe {

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

bool is_leaf(const OrderedJson& json) {
  if (!json.is_structured() || json.empty()) return true;
  return json.is_array() &&
         std::none_of(json.begin(), json.end(), [](const auto& item) { return item.is_structured(); });
}

void add(const OrderedJson& json, const std::string& path, size_t limit, Lines& lines) {
  if (lines.size() >= limit) return;
  if (is_leaf(json)) {
    lines.emplace_back(path, value_text(json));
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add(value, path.empty() ? key : path + "." + key, limit, lines);
  } else {
    for (size_t i = 0; i < json.size(); ++i) add(json[i], str(path, "[", i, "]"), limit, lines);
  }
}

}  // namespace

std::string value_text(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return shortest_double(value.get<double>());
  if (!value.is_array()) return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  std::vector<std::string> items;
  for (const OrderedJson& item : value) items.push_back(value_text(item));
  return "[" + join(items, ", ") + "]";
}

std::vector<std::pair<std::string, std::string>> flatten(const OrderedJson& json, size_t limit) {
  Lines lines;
  if (json.is_null()) return lines;
  add(json, "", limit, lines);
  if (lines.size() >= limit) lines.emplace_back("…", str("more than ", limit, " values"));
  return lines;
}

}  // namespace skytrain::observe
