#include "skytrain/data/table_dataset.h"

#include <span>

#include "skytrain/base/text.h"
#include "skytrain/data/class_names.h"
#include "skytrain/data/fingerprint.h"

namespace skytrain::data {

TableDataset::TableDataset(std::string format, std::string path, size_t features, size_t values)
    : path_(std::move(path)), features_(std::make_unique<FloatTable>(features, path_)) {
  if (values > 0) values_ = std::make_unique<FloatTable>(values, path_);
  info_.format = std::move(format);
  info_.elements = Elements::kFloat32;
  info_.channels = static_cast<int64_t>(features);
  info_.height = info_.width = 1;
  info_.values = static_cast<int64_t>(values);
}

std::pair<float*, float*> TableDataset::add_row() {
  return {features_->add_row(), values_ ? values_->add_row() : nullptr};
}

void TableDataset::complete(std::vector<std::string> feature_names, LabelColumn& labels, const OpenOptions& options) {
  info_.samples = rows();
  info_.feature_names = std::move(feature_names);
  if (has_class()) {
    LabelColumn::Result result = labels.finish(options);
    labels_ = std::move(result.labels);
    info_.classes = result.classes;
    info_.class_names = std::move(result.class_names);
    if (!info_.class_names.empty()) check_class_count(info_, options, path_);
  }
  info_.bytes_in_memory = features_->bytes() + (has_class() ? 4 * labels_.size() : values_->bytes());
  add_fingerprint();
}

void TableDataset::add_fingerprint() {
  FingerprintHash hash;
  hash.text(info_.format);
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

int64_t TableDataset::label(uint64_t index) const { return values_ ? Dataset::label(index) : labels_[index]; }

const float* TableDataset::values(uint64_t index) const {
  return values_ ? values_->row(index) : Dataset::values(index);
}

std::string TableDataset::name(uint64_t index) const {
  return str(path_.substr(path_.find_last_of('/') + 1), "[", index, "]");
}

}  // namespace skytrain::data
