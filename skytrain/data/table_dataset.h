// skytrain/data/table_dataset.h
//
// Rows of features in memory, each with a class or with values: what formats of text are read into (csv.h,
// jsonl_rows.h). Immutable once complete() was called, so that any thread may read it.

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/data/dataset.h"
#include "skytrain/data/float_table.h"
#include "skytrain/data/label_column.h"

namespace skytrain::data {

class TableDataset : public Dataset {
 public:
  const DatasetInfo& info() const final { return info_; }
  const float* features(uint64_t index) const final { return features_->row(index); }
  int64_t label(uint64_t index) const final;
  const float* values(uint64_t index) const final;
  std::string name(uint64_t index) const final;

 protected:
  // features, values: of a row, > 0; values 0: the target is a class. path: of the file.
  TableDataset(std::string format, std::string path, size_t features, size_t values);

  bool has_class() const { return values_ == nullptr; }
  // A row to be filled by the caller: all of its features and values (nullptr: the target is a class).
  std::pair<float*, float*> add_row();
  uint64_t rows() const { return features_->rows(); }

  // Once all rows are there. labels: read where the target is a class. Throws what LabelColumn::finish() does.
  void complete(std::vector<std::string> feature_names, LabelColumn& labels, const OpenOptions& options);

 private:
  void add_fingerprint();

  const std::string path_;
  DatasetInfo info_;
  std::unique_ptr<FloatTable> features_, values_;  // values_: of a target that is values
  std::vector<int32_t> labels_;                    // of a target that is a class
};

}  // namespace skytrain::data
