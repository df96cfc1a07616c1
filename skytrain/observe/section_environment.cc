// Where and from what the run was made: versions, host, devices, data, attempts; and the recipe.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "skytrain/base/text.h"
#include "skytrain/observe/flatten.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/recipe_origins.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

// Columns of an attempt: these first, then whatever else it has.
constexpr size_t kAttemptColumns = 10;
constexpr const char* kFirstColumns[] = {"started", "ended", "status", "steps", "resumed_from_step", "devices", "host"};
constexpr size_t kUnbroken = 24;  // characters of a value that stay on one line, such as a time

std::string attempts_table(const OrderedJson& attempts) {
  if (!attempts.is_array() || attempts.empty()) return "";
  using Cells = std::map<std::string, std::string>;
  std::vector<Cells> rows;
  std::vector<std::string> keys(std::begin(kFirstColumns), std::end(kFirstColumns)), columns;
  for (const OrderedJson& attempt : attempts) {
    Cells& cells = rows.emplace_back();
    for (const auto& [key, value] : flatten(attempt, 50)) {
      cells[key] = value;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    const bool used = std::any_of(rows.begin(), rows.end(), [&](const Cells& cells) { return cells.count(key) > 0; });
    if (used && columns.size() < kAttemptColumns) columns.push_back(key);
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
      const auto found = rows[i].find(column);
      std::string value = found == rows[i].end() ? "" : escape(found->second, 200);
      if (value.size() <= kUnbroken) value = "<span class=\"unbroken\">" + value + "</span>";
      cells.push_back(value);
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

// The value is the one of recipe.json, which is written anew when `auto` has decided; recipe.yaml may be from before.
std::string origin_of(const std::map<std::string, ExplainedValue>& explained, const std::string& key,
                      const std::string& value) {
  const auto found = explained.find(key);
  if (found == explained.end()) return "";
  const bool decided_later = found->second.value == "auto" && value != "auto";
  return escape(decided_later ? "auto" : found->second.origin, 200);
}

}  // namespace

std::string environment_section(const Records& records) {
  OrderedJson run = records.run;
  if (run.is_object()) run.erase("attempts");
  Table table("As run.json and summary.json have it", "tt", {"Key", "Value"}, "pairs");
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
  const auto lines = flatten(records.recipe);
  const auto explained = read_explained_recipe(records.recipe_yaml);
  std::string content;
  if (!lines.empty()) {
    Table table("The resolved recipe, and where each value came from", "ttt", {"Key", "Value", "Origin"}, "pairs");
    for (const auto& [key, value] : lines) {
      table.row({escape(key, 200), escape(value, 600), origin_of(explained, key, value)});
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
