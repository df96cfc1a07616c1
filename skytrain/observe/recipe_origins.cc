#include "skytrain/observe/recipe_origins.h"

#include <vector>

#include "skytrain/base/text.h"

namespace skytrain::observe {

namespace {

struct Open {  // a mapping whose keys follow, further to the right
  size_t indent = 0;
  std::string path;
  size_t elements = 0;  // of the list in it
};

}  // namespace

std::map<std::string, ExplainedValue> read_explained_recipe(std::string_view yaml) {
  std::map<std::string, ExplainedValue> values;
  std::vector<Open> open;
  while (!yaml.empty()) {
    std::string_view line = yaml.substr(0, yaml.find('\n'));
    yaml.remove_prefix(std::min(yaml.size(), line.size() + 1));
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    while (!open.empty() && open.back().indent >= indent) open.pop_back();
    line.remove_prefix(indent);

    std::string path = open.empty() ? std::string() : open.back().path;
    if (line.substr(0, 2) == "- " && !open.empty()) {
      path += str("[", open.back().elements++, "]");
      line.remove_prefix(2);
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    path += (path.empty() ? "" : ".") + std::string(line.substr(0, colon));
    line.remove_prefix(colon + 1);
    if (line.empty()) {
      open.push_back({indent, path});
      continue;
    }
    ExplainedValue explained;
    if (const size_t comment = line.rfind("  # "); comment != std::string_view::npos) {
      explained.origin = line.substr(comment + 4);
      line = line.substr(0, comment);
    }
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string_view::npos) explained.value = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
    values.emplace(std::move(path), std::move(explained));
  }
  return values;
}

}  // namespace skytrain::observe
