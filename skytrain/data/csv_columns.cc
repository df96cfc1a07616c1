#include "skytrain/data/csv_columns.h"

#include <algorithm>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/csv_number.h"
#include "skytrain/data/folder_text.h"

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
  const std::vector<std::string> own = found.feature_names();
  for (const std::string& name : training) {
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    throw Error(ErrorKind::kData, reader.where(),
                str("has no column \"", printable(name), "\", which the training set has", did_you_mean(name, own)),
                "its columns: " + first_names(own));
  }
  for (CsvColumns::Column& column : found.columns) {
    if (column.role != CsvColumns::Role::kFeature) continue;
    const auto place = std::find(training.begin(), training.end(), column.name);
    if (place == training.end()) {
      throw Error(ErrorKind::kData, reader.where(),
                  str("has a column \"", printable(column.name), "\", which the training set does not have"),
                  "remove it, or add it to the training set");
    }
    column.index = static_cast<size_t>(place - training.begin());
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

  const std::string where = options.eval ? "data.eval.target" : "data.train.target";
  for (const std::string& target : spec.target) {
    if (std::find(names.begin(), names.end(), target) == names.end()) {
      throw Error(
          ErrorKind::kRecipe, where,
          str(reader.path(), " has no column \"", printable(target), "\"", did_you_mean(target, names)),
          (found.header ? "its columns: " : "it has no header, so its columns are called ") + first_names(names));
    }
    if (std::count(spec.target.begin(), spec.target.end(), target) > 1) {
      throw Error(ErrorKind::kRecipe, where, str("names column \"", printable(target), "\" twice"));
    }
  }
  for (std::string& name : names) {
    const auto target = std::find(spec.target.begin(), spec.target.end(), name);
    const bool is_target = target != spec.target.end();
    const size_t index = is_target ? static_cast<size_t>(target - spec.target.begin()) : found.features;
    found.columns.push_back(
        {std::move(name), is_target ? CsvColumns::Role::kTarget : CsvColumns::Role::kFeature, index});
    ++(is_target ? found.targets : found.features);
  }
  if (found.features == 0) {
    throw Error(ErrorKind::kRecipe, where, str("leaves no column of ", reader.path(), " for the features"));
  }
  if (options.train != nullptr && !options.train->feature_names.empty()) {
    match_training(found, options.train->feature_names, reader);
  }
  return found;
}

}  // namespace skytrain::data
