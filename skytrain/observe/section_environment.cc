// Where and from what the run was made: versions, host, devices, data, attempts; and the recipe.

#include <algorithm>
#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/flatten.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

constexpr size_t kAttemptColumns = 10;

std::string attempts_table(const OrderedJson& attempts) {
  if (!attempts.is_array() || attempts.empty()) return "";
  std::vector<std::string> columns;
  std::vector<std::vector<std::pair<std::string, std::string>>> rows;
  for (const OrderedJson& attempt : attempts) {
    rows.push_back(flatten(attempt, 50));
    for (const auto& [key, value] : rows.back()) {
      const bool known = std::find(columns.begin(), columns.end(), key) != columns.end();
      if (!known && columns.size() < kAttemptColumns) columns.push_back(key);
    }
  }
  std::vector<std::string> header = {"Attempt"};
  for (const std::string& column : columns) {
    std::string words = column;
    std::replace(words.begin(), words.end(), '_', ' ');
    header.push_back(escape(words, 60));
  }
  Table table("Starts and resumes of this run", std::string(header.size(), 't'), header);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells = {str(i + 1)};
    for (const std::string& column : columns) {
      const auto found =
          std::find_if(rows[i].begin(), rows[i].end(), [&](const auto& item) { return item.first == column; });
      cells.push_back(found == rows[i].end() ? "" : escape(found->second, 200));
    }
    table.row(cells);
  }
  return table.html();
}

std::string membership_table(const std::vector<Membership>& memberships) {
  if (memberships.size() < 2) return "";
  Table table("Who trained which steps", "nnnn", {"From step", "To step", "Processes", "Generation"});
  for (const Membership& stretch : memberships) {
    table.row({count(static_cast<double>(stretch.first_step)), count(static_cast<double>(stretch.last_step)),
               count(stretch.world), count(stretch.generation)});
  }
  return table.html();
}

// A value that may also be long free text; bytes are shown for people.
std::string shown(const std::string& key, const std::string& value) {
  constexpr std::string_view kBytes = "_bytes";
  if (key.size() > kBytes.size() && key.compare(key.size() - kBytes.size(), kBytes.size(), kBytes) == 0 &&
      !value.empty() && value.size() < 19 && value.find_first_not_of("0123456789") == std::string::npos) {
    return human_bytes(std::stod(value));
  }
  return escape(value, 600);
}

std::string origin_of(const OrderedJson& origins, const std::string& key) {
  const OrderedJson& origin = child(origins, key);
  const std::string kind = text(origin, "kind"), place = text(origin, "place");
  if (kind == "file" || kind == "set") return escape(place.empty() ? kind : place, 200);
  if (kind.empty() && place.empty()) return "";
  return escape(place.empty() ? kind : kind + ": " + place, 200);
}

}  // namespace

std::string environment_section(const Records& records) {
  OrderedJson run = records.run;
  if (run.is_object()) run.erase("attempts");
  Table table("As run.json and summary.json have it", "tt", {"Key", "Value"});
  for (const auto& [key, value] : flatten(run)) table.row({escape(key, 200), shown(key, value)});
  for (const char* key : {"version", "torch_version", "data_fingerprint"}) {
    const OrderedJson& value = child(records.summary, key);
    if (value.is_null() || !child(records.run, key).is_null()) continue;
    for (const auto& [inner, line] : flatten(OrderedJson{{key, value}})) {
      table.row({escape(inner, 200), escape(line, 600)});
    }
  }
  std::string content = attempts_table(child(records.run, "attempts")) + membership_table(records.metrics.memberships);
  if (!table.empty()) content += table.html();
  return section("environment", "Environment",
                 content.empty() ? "<p>run.json is missing: where the run was made is not known.</p>\n" : content);
}

std::string recipe_section(const Records& records) {
  const OrderedJson& inner = child(records.recipe, "recipe");
  const bool with_origins = inner.is_object();
  const OrderedJson& origins = with_origins ? child(records.recipe, "origins") : inner;
  std::string content;
  const auto lines = flatten(with_origins ? inner : records.recipe);
  if (!lines.empty()) {
    Table table(
        with_origins ? "The resolved recipe, and where each value came from" : "The resolved recipe",
        with_origins ? "ttt" : "tt",
        with_origins ? std::vector<std::string>{"Key", "Value", "Origin"} : std::vector<std::string>{"Key", "Value"});
    for (const auto& [key, value] : lines) {
      std::vector<std::string> cells = {escape(key, 200), escape(value, 600)};
      if (with_origins) cells.push_back(origin_of(origins, key));
      table.row(cells);
    }
    content += table.html();
  }
  if (!records.recipe_yaml.empty()) {
    content += str("<details", lines.empty() ? " open" : "", "><summary>recipe.yaml</summary>\n<pre tabindex=\"0\">",
                   escape_lines(records.recipe_yaml), "</pre></details>\n");
  }
  return section("recipe", "Recipe", content.empty() ? "<p>The recipe is missing.</p>\n" : content);
}

}  // namespace skytrain::observe
