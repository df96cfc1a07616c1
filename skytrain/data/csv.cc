#include "skytrain/data/csv.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/class_names.h"
#include "skytrain/data/csv_columns.h"
#include "skytrain/data/csv_number.h"
#include "skytrain/data/csv_reader.h"
#include "skytrain/data/fingerprint.h"
#include "skytrain/data/label_column.h"

namespace skytrain::data {
namespace {

constexpr size_t kBlockFloats = size_t{1} << 20;

// Whether the target is a class. Throws when the columns of the recipe do not fit its loss or its model.
bool target_is_class(const recipe::DatasetSpec& spec, const OpenOptions& options) {
  const std::string where = options.eval ? "data.eval.target" : "data.train.target";
  const int64_t columns = static_cast<int64_t>(spec.target.size());
  if (columns == 0) throw Error(ErrorKind::kRecipe, where, "is empty", "name the column of the class or of the value");
  if (options.target == TargetKind::kClass) {
    if (columns == 1) return true;
    throw Error(ErrorKind::kRecipe, where, str("names ", columns, " columns, but cross_entropy takes one: the class"),
                "name one column, or set train.loss to mse or bce");
  }
  if (columns == 1 && options.classes > 1) return true;
  if (options.classes > 0 && options.classes != columns) {
    throw Error(ErrorKind::kRecipe, where,
                str("names ", columns, columns == 1 ? " column" : " columns", ", but the model has ", options.classes,
                    options.classes == 1 ? " output" : " outputs"),
                str("set model.classes to ", columns));
  }
  return false;
}

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

FloatTable::FloatTable(size_t columns, std::string where)
    : columns_(columns), block_rows_(std::max<size_t>(1, kBlockFloats / columns)), where_(std::move(where)) {}

float* FloatTable::add_row() {
  if (rows_ == blocks_.size() * block_rows_) {
    std::unique_ptr<float[]> block(new (std::nothrow) float[block_rows_ * columns_]);
    if (!block) {
      throw Error(ErrorKind::kEnvironment, where_,
                  str("needs more than ", human_bytes(static_cast<double>(bytes())), " of memory"),
                  "use a machine with more memory, or a smaller data set");
    }
    blocks_.push_back(std::move(block));
  }
  return blocks_.back().get() + rows_++ % block_rows_ * columns_;
}

std::unique_ptr<CsvDataset> CsvDataset::open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                             const OpenOptions& options) {
  const bool has_class = target_is_class(spec, options);
  CsvReader reader(fs, spec.path);
  bool more = reader.next();
  if (!more) throw Error(ErrorKind::kData, spec.path, "holds no line of values", "expected a CSV file");
  const CsvColumns columns = find_csv_columns(reader, spec, options);

  std::unique_ptr<CsvDataset> set(new CsvDataset);
  set->features_ = std::make_unique<FloatTable>(columns.features, spec.path);
  if (!has_class) set->values_ = std::make_unique<FloatTable>(columns.targets, spec.path);
  LabelColumn labels(spec.target.front());
  for (more = !columns.header || reader.next(); more; more = reader.next()) {
    const std::span<const CsvReader::Field> fields = reader.fields();
    if (fields.size() != columns.columns.size()) {
      throw Error(ErrorKind::kData, reader.where(),
                  str("has ", fields.size(), fields.size() == 1 ? " field" : " fields", ", the first line has ",
                      columns.columns.size()),
                  "put fields that hold commas into quotes");
    }
    float* const features = set->features_->add_row();
    float* const values = has_class ? nullptr : set->values_->add_row();
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
  if (set->features_->rows() == 0) throw Error(ErrorKind::kData, spec.path, "holds a header and no rows");

  DatasetInfo& info = set->info_;
  info.format = "csv";
  info.samples = set->features_->rows();
  info.elements = Elements::kFloat32;
  info.channels = static_cast<int64_t>(columns.features);
  info.height = info.width = 1;
  info.feature_names = columns.feature_names();
  if (has_class) {
    LabelColumn::Result result = labels.finish(options);
    set->labels_ = std::move(result.labels);
    info.classes = result.classes;
    info.class_names = std::move(result.class_names);
    if (!info.class_names.empty()) check_class_count(info, options, spec.path);
  } else {
    info.values = static_cast<int64_t>(columns.targets);
  }
  info.bytes_in_memory = set->features_->bytes() + (has_class ? 4 * set->labels_.size() : set->values_->bytes());
  set->file_ = spec.path.substr(spec.path.find_last_of('/') + 1);
  set->add_fingerprint();
  return set;
}

void CsvDataset::add_fingerprint() {
  FingerprintHash hash;
  hash.text("csv");
  hash.number(info_.samples);
  hash.number(static_cast<uint64_t>(info_.channels));
  hash.number(static_cast<uint64_t>(info_.values));
  const auto add = [&](const FloatTable& table, int64_t columns) {
    for (uint64_t i = 0; i < table.rows(); ++i) {
      hash.bytes(std::as_bytes(std::span(table.row(i), static_cast<size_t>(columns))));
    }
  };
  add(*features_, info_.channels);
  if (values_) add(*values_, info_.values);
  hash.numbers(labels_);
  info_.fingerprint = hash.hex();
}

int64_t CsvDataset::label(uint64_t index) const { return values_ ? Dataset::label(index) : labels_[index]; }

const float* CsvDataset::values(uint64_t index) const { return values_ ? values_->row(index) : Dataset::values(index); }

std::string CsvDataset::name(uint64_t index) const { return str(file_, "[", index, "]"); }

}  // namespace skytrain::data
