#include "skytrain/data/csv_columns.h"

#include <algorithm>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/csv_number.h"
#include "skytrain/data/table_columns.h"

namespace skytrain::data {
namespace {

bool all_numbers(std::span<const CsvReader::Field> fields) {
  return std::all_of(fields.begin(), fields.end(), [](const auto& field) { return parse_number(field.text); });
}

// 0, 1, 2, …: what pandas writes as the header of a table without names.
bool counts_up(std::span<const CsvReader::Field> fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].text != std::to_string(i)) return false;
  }
  return fields.size() >= 3;
}

void check_header(const CsvReader& reader) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < reader.fields().size(); ++i) {
    const CsvReader::Field& field = reader.fields()[i];
    if (field.text.empty()) {
      throw Error(ErrorKind::kData, reader.where(field), str("column ", i, " has no name"),
                  i == 0 ? "pandas writes its index like this: to_csv(…, index=False) leaves it out"
                         : "give each column a name in the first line");
    }
    if (invalid_utf8_at(field.text) != std::string::npos) {
      throw Error(ErrorKind::kData, reader.where(field), str("the name of column ", i, " is not UTF-8"),
                  "save the file as UTF-8");
    }
    if (!seen.insert(field.text).second) {
      throw Error(ErrorKind::kData, reader.where(field), str("there are two columns \"", printable(field.text), "\""),
                  "give each column a name of its own");
    }
  }
}

// The feature columns of an evaluation set take the places that they have in the training set.
void match_training(CsvColumns& found, const std::vector<std::string>& training, const CsvReader& reader) {
  const std::vector<size_t> places = places_in_training(found.feature_names(), training, reader.where(), "column");
  for (CsvColumns::Column& column : found.columns) {
    if (column.role == CsvColumns::Role::kFeature) column.index = places[column.index];
  }
}

}  // namespace

std::vector<std::string> CsvColumns::feature_names() const {
  std::vector<std::string> names(features);
  for (const Column& column : columns) {
    if (column.role == Role::kFeature) names[column.index] = column.name;
  }
  return names;
}

CsvColumns find_csv_columns(const CsvReader& reader, const recipe::DatasetSpec& spec, const OpenOptions& options) {
  const std::span<const CsvReader::Field> fields = reader.fields();
  if (fields.size() == 1 && fields[0].text.find_first_of(";\t") != std::string_view::npos) {
    throw Error(ErrorKind::kData, reader.where(),
                "has no commas: its fields seem to be separated by semicolons or tabs",
                "save it with commas between the fields, and points in the numbers");
  }
  CsvColumns found;
  found.header = !all_numbers(fields) || counts_up(fields);
  if (found.header) check_header(reader);
  std::vector<std::string> names;
  for (size_t i = 0; i < fields.size(); ++i) names.push_back(found.header ? std::string(fields[i].text) : str(i));

  check_targets(names, spec, options, "column",
                found.header ? "its columns: " : "it has no header, so its columns are called ");
  for (std::string& name : names) {
    const auto target = std::find(spec.target.begin(), spec.target.end(), name);
    const bool is_target = target != spec.target.end();
    const size_t index = is_target ? static_cast<size_t>(target - spec.target.begin()) : found.features;
    found.columns.push_back(
        {std::move(name), is_target ? CsvColumns::Role::kTarget : CsvColumns::Role::kFeature, index});
    ++(is_target ? found.targets : found.features);
  }
  if (found.features == 0) {
    throw Error(ErrorKind::kRecipe, target_key(options),
                str("leaves no column of ", reader.path(), " for the features"));
  }
  if (options.train != nullptr && !options.train->feature_names.empty()) {
    match_training(found, options.train->feature_names, reader);
  }
  return found;
}

}  // namespace skytrain::data
