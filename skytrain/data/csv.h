// skytrain/data/csv.h
//
// Format "csv": rows of numbers in a text file (csv_reader.h), read into memory as float32. spec.target names the
// column of the class, or those of the values; all others are features, in the order of the file.
//
// The first record is the header, unless all of it is numbers: then the columns are called "0", "1", …

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

// Rows of floats in blocks, so that it grows without being copied.
class FloatTable {
 public:
  // columns > 0. where: for Error(kEnvironment) about lack of memory.
  FloatTable(size_t columns, std::string where);
  float* add_row();
  const float* row(uint64_t index) const { return blocks_[index / block_rows_].get() + index % block_rows_ * columns_; }
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return rows_ * columns_ * sizeof(float); }

 private:
  size_t columns_, block_rows_;
  uint64_t rows_ = 0;
  std::string where_;
  std::vector<std::unique_ptr<float[]>> blocks_;
};

class CsvDataset final : public Dataset {
 public:
  // The target is a class for TargetKind::kClass, and also for kValues when the model has several outputs and
  // spec.target names one column; else it is values. An evaluation set has the same features as options.train, found by
  // name wherever they stand.
  static std::unique_ptr<CsvDataset> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                          const OpenOptions& options);

  const DatasetInfo& info() const override { return info_; }
  const float* features(uint64_t index) const override { return features_->row(index); }
  int64_t label(uint64_t index) const override;
  const float* values(uint64_t index) const override;
  std::string name(uint64_t index) const override;

 private:
  CsvDataset() = default;
  void add_fingerprint();

  DatasetInfo info_;
  std::string file_;
  std::unique_ptr<FloatTable> features_, values_;  // values_: of a target that is values
  std::vector<int32_t> labels_;                    // of a target that is a class
};

}  // namespace skytrain::data
