#include "skytrain/data/jsonl_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/jsonl_fields.h"
#include "skytrain/data/jsonl_reader.h"
#include "skytrain/data/table_columns.h"

namespace skytrain::data {
namespace {

using Field = JsonlReader::Field;
using Kind = JsonlReader::Kind;

struct Column {
  std::string key;
  bool is_target = false, is_array = false;
  size_t first = 0, count = 0;  // places in the row of features, or in that of values
};

// Of a row. Their names alone are a hundred megabytes.
constexpr size_t kMostFeatures = 1'000'000;

struct Columns {
  std::vector<Column> columns;  // as the first line has them
  bool has_class = false;
  size_t features = 0, values = 0;
  std::vector<size_t> places;  // of each feature, in the training set's order

  void add(const JsonlReader& reader, const Field& field);
  std::vector<std::string> feature_names() const;
};

void Columns::add(const JsonlReader& reader, const Field& field) {
  if (field.kind == Kind::kText || field.kind == Kind::kOther) {
    refuse_field(reader, field, "a number, or an array of numbers", "encode it as numbers, or remove the key");
  }
  if (field.count == 0) refuse_field(reader, field, "at least one", "remove the key");
  columns.push_back({field.key, false, field.kind == Kind::kNumbers, features, field.count});
  features += field.count;
}

std::vector<std::string> Columns::feature_names() const {
  std::vector<std::string> names(features);
  size_t next = 0;
  for (const Column& column : columns) {
    if (column.is_target) continue;
    for (size_t i = 0; i < column.count; ++i, ++next) {
      names[places[next]] = column.is_array ? str(column.key, "[", i, "]") : column.key;
    }
  }
  return names;
}

// reader: at the first record.
Columns find_columns(const JsonlReader& reader, const recipe::DatasetSpec& spec, const OpenOptions& options) {
  check_targets(reader.keys(), spec, options, "key", "keys of its first line: ");
  Columns found;
  std::vector<const Field*> targets(spec.target.size());
  for (const Field& field : reader.fields()) {
    const auto target = std::find(spec.target.begin(), spec.target.end(), field.key);
    if (target == spec.target.end()) {
      found.add(reader, field);
    } else {
      targets[static_cast<size_t>(target - spec.target.begin())] = &field;
      found.columns.push_back({field.key, true, field.kind == Kind::kNumbers, 0, 0});
    }
  }
  if (found.features > kMostFeatures) {
    throw Error(ErrorKind::kData, reader.where(),
                str("has ", found.features, " numbers, and a row may have ", kMostFeatures));
  }
  size_t values = 0;
  for (const Field* field : targets) values += field->kind == Kind::kNumbers ? field->count : 1;
  const bool single = targets.size() == 1 && targets.front()->kind != Kind::kNumbers;
  found.has_class = target_is_class(spec, options, values, single, "key");
  if (!found.has_class) {
    for (size_t i = 0; i < targets.size(); ++i) {
      const auto column = std::find_if(found.columns.begin(), found.columns.end(),
                                       [&](const Column& c) { return c.key == spec.target[i]; });
      column->first = found.values;
      column->count = targets[i]->kind == Kind::kNumbers ? targets[i]->count : 1;
      if (column->count == 0) refuse_field(reader, *targets[i], "at least one", "");
      found.values += column->count;
    }
  }
  if (found.features == 0) {
    throw Error(ErrorKind::kRecipe, target_key(options), str("leaves no key of ", reader.path(), " for the features"),
                "a file that lists pictures needs image: the key of their files");
  }
  found.places.resize(found.features);
  std::iota(found.places.begin(), found.places.end(), size_t{0});
  const std::vector<std::string> own = found.feature_names();
  std::vector<std::string> sorted = own;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw Error(ErrorKind::kData, reader.where(), str("has two features \"", printable(*twice), "\""),
                "give the keys names that differ from those of arrays' elements");
  }
  if (options.train != nullptr && !options.train->feature_names.empty()) {
    found.places = places_in_training(own, options.train->feature_names, reader.where(), "feature");
  }
  return found;
}

float narrowed(const JsonlReader& reader, const Field& field, double number) {
  const auto value = static_cast<float>(number);
  if (std::isfinite(value)) return value;
  throw Error(
      ErrorKind::kData, reader.where(field),
      str("key \"", printable(field.key), "\" holds ", shortest_double(number), ", which is too large for float32"),
      "scale it");
}

// The numbers of a field, as many as the first line had.
std::span<const double> numbers_of(const JsonlReader& reader, const Field& field, const Column& column) {
  const std::string expected =
      column.is_array
          ? str("an array of ", column.count, column.count == 1 ? " number" : " numbers", ", as in the first line")
          : "a number";
  const bool fits = field.kind == (column.is_array ? Kind::kNumbers : Kind::kNumber) && field.count == column.count;
  if (!fits) refuse_field(reader, field, expected, "");
  return reader.numbers(field);
}

}  // namespace

std::unique_ptr<JsonlRows> JsonlRows::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                           const OpenOptions& options) {
  JsonlReader reader(fs, spec.path);
  if (!reader.next()) throw Error(ErrorKind::kData, spec.path, "holds no line", "expected a JSONL file");
  const Columns columns = find_columns(reader, spec, options);
  std::unique_ptr<JsonlRows> set(new JsonlRows("jsonl", spec.path, columns.features, columns.values));
  LabelColumn labels(str("key \"", printable(spec.target.front()), "\""));
  do {
    const auto [features, values] = set->add_row();
    size_t guess = 0;
    for (const Column& column : columns.columns) {
      const Field& field = need_field(reader, column.key, guess);
      ++guess;
      if (column.is_target && columns.has_class) {
        add_label(reader, field, labels);
        continue;
      }
      const std::span<const double> numbers = numbers_of(reader, field, column);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const float number = narrowed(reader, field, numbers[i]);
        if (column.is_target) {
          values[column.first + i] = number;
        } else {
          features[columns.places[column.first + i]] = number;
        }
      }
    }
    if (reader.fields().size() > columns.columns.size()) {
      for (const Field& field : reader.fields()) {
        const auto is_field = [&](const Column& column) { return column.key == field.key; };
        if (std::any_of(columns.columns.begin(), columns.columns.end(), is_field)) continue;
        throw Error(ErrorKind::kData, reader.where(field),
                    str("key \"", printable(field.key), "\" is not in the first line"),
                    "write the same keys in every line");
      }
    }
  } while (reader.next());
  set->complete(columns.feature_names(), labels, options);
  return set;
}

}  // namespace skytrain::data
