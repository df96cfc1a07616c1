// skytrain/data/csv.h
//
// Format "csv": rows of numbers in a text file (csv_reader.h), read into memory as float32. spec.target names the
// column of the class, or those of the values; all others are features, in the order of the file.
//
// The first record is the header, unless all of it is numbers: then the columns are called "0", "1", …

#pragma once
#include <memory>

#include "skytrain/data/table_dataset.h"

namespace skytrain::data {

class CsvDataset final : public TableDataset {
 public:
  // What the target is: target_is_class(). An evaluation set has the same features as options.train, found by name
  // wherever they stand.
  static std::unique_ptr<CsvDataset> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                          const OpenOptions& options);

 private:
  using TableDataset::TableDataset;
};

}  // namespace skytrain::data
