#include "skytrain/data/csv.h"

#include <cmath>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/csv_columns.h"
#include "skytrain/data/csv_number.h"
#include "skytrain/data/csv_reader.h"
#include "skytrain/data/label_column.h"
#include "skytrain/data/table_columns.h"

namespace skytrain::data {
namespace {

float parse_field(const CsvReader& reader, const CsvReader::Field& field, const std::string& name) {
  const std::optional<double> number = parse_number(field.text);
  if (number && std::isfinite(static_cast<float>(*number))) return static_cast<float>(*number);
  const std::string column = str("column \"", printable(name), "\" ");
  if (number) {
    throw Error(ErrorKind::kData, reader.where(field),
                column + str("holds ", printable(field.text), ", which is too large for float32"), "scale the column");
  }
  if (is_missing(field.text)) {
    throw Error(ErrorKind::kData, reader.where(field),
                column + (field.text.empty() ? "is empty" : str("holds \"", field.text, "\": a missing value")),
                "fill it in, or remove the row");
  }
  throw Error(ErrorKind::kData, reader.where(field),
              column + str("holds \"", printable(field.text, 60), "\", which is no (finite) number"),
              "features are numbers: encode it, or remove the column");
}

}  // namespace

std::unique_ptr<CsvDataset> CsvDataset::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                             const OpenOptions& options) {
  const bool has_class =
      target_is_class(spec, options, spec.target.size(), /*single=*/spec.target.size() == 1, "column");
  CsvReader reader(fs, spec.path);
  bool more = reader.next();
  if (!more) throw Error(ErrorKind::kData, spec.path, "holds no line of values", "expected a CSV file");
  const CsvColumns columns = find_csv_columns(reader, spec, options);

  std::unique_ptr<CsvDataset> set(new CsvDataset("csv", spec.path, columns.features, has_class ? 0 : columns.targets));
  LabelColumn labels(str("column \"", printable(spec.target.front()), "\""));
  for (more = !columns.header || reader.next(); more; more = reader.next()) {
    const std::span<const CsvReader::Field> fields = reader.fields();
    if (fields.size() != columns.columns.size()) {
      throw Error(ErrorKind::kData, reader.where(),
                  str("has ", fields.size(), fields.size() == 1 ? " field" : " fields", ", the first line has ",
                      columns.columns.size()),
                  "put fields that hold commas into quotes");
    }
    const auto [features, values] = set->add_row();
    for (size_t i = 0; i < fields.size(); ++i) {
      const CsvColumns::Column& column = columns.columns[i];
      if (column.role == CsvColumns::Role::kFeature) {
        features[column.index] = parse_field(reader, fields[i], column.name);
      } else if (has_class) {
        labels.add(fields[i].text, [&] { return reader.where(fields[i]); });
      } else {
        values[column.index] = parse_field(reader, fields[i], column.name);
      }
    }
  }
  if (set->rows() == 0) throw Error(ErrorKind::kData, spec.path, "holds a header and no rows");
  set->complete(columns.feature_names(), labels, options);
  return set;
}

}  // namespace skytrain::data
