#include <map>

#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/recipe/sections.h"

namespace skytrain::recipe {
namespace {

struct Leaf {
  std::string path;
  Continuity continuity;
  std::string text;
};

std::vector<Leaf> leaves_of(const Recipe& recipe) {
  std::vector<Leaf> leaves;
  recipe_section().leaves("", Continuity::kMustMatch, recipe,
                          [&](const std::string& path, Continuity continuity, const OrderedJson& value) {
                            leaves.push_back({path, continuity, yaml_text(value)});
                          });
  return leaves;
}

}  // namespace

std::string fingerprint(const Recipe& recipe) {
  std::string text;
  for (const Leaf& leaf : leaves_of(recipe)) {
    if (leaf.continuity == Continuity::kMustMatch) text += leaf.path + ": " + leaf.text + "\n";
  }
  return xxh128_hex(text);
}

std::vector<std::string> differences(const Recipe& a, const Recipe& b) {
  std::map<std::string, Leaf> before;
  for (Leaf& leaf : leaves_of(a)) before[leaf.path] = leaf;
  std::vector<std::string> out;
  for (const Leaf& leaf : leaves_of(b)) {
    const auto it = before.find(leaf.path);
    const std::string was = it == before.end() ? "not given" : it->second.text;
    if (it != before.end()) before.erase(it);
    if (leaf.continuity == Continuity::kMayChange || was == leaf.text) continue;
    if (leaf.continuity == Continuity::kAutoMatchesAll && (was == "auto" || leaf.text == "auto")) continue;
    out.push_back(leaf.path + ": " + leaf.text + ", was " + was);
  }
  for (const auto& [path, leaf] : before) {
    if (leaf.continuity != Continuity::kMayChange) out.push_back(path + ": not given, was " + leaf.text);
  }
  return out;
}

}  // namespace skytrain::recipe
