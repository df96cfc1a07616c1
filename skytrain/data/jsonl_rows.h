// skytrain/data/jsonl_rows.h
//
// A JSONL file of rows of numbers, read into memory as float32. spec.target names the key of the class, or those of the
// values; all others are features: numbers, or arrays of numbers of one length, whose elements are features one after
// the other ("x[0]", "x[1]", …). The first line says which keys there are, in which order, and how long arrays are.

#pragma once
#include <memory>

#include "skytrain/data/table_dataset.h"

namespace skytrain::data {

class JsonlRows final : public TableDataset {
 public:
  // What the target is: target_is_class(); an array is values. An evaluation set has the same features as
  // options.train, found by name wherever they stand.
  static std::unique_ptr<JsonlRows> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                         const OpenOptions& options);

 private:
  using TableDataset::TableDataset;
};

}  // namespace skytrain::data
