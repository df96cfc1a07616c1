// skytrain/data/csv_columns.h
//
// Which column of a CSV file is what.

#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "skytrain/data/csv_reader.h"
#include "skytrain/data/dataset.h"

namespace skytrain::data {

struct CsvColumns {
  enum class Role { kFeature, kTarget };
  struct Column {
    std::string name;
    Role role = Role::kFeature;
    size_t index = 0;  // of the feature, or of the target
  };
  std::vector<Column> columns;  // as the file has them
  size_t features = 0, targets = 0;
  bool header = true;  // false: the record is a row already, and the columns are numbered

  std::vector<std::string> feature_names() const;  // by index
};

// reader: at the file's first record. Throws Error(kData) for a header that is none, and Error(kRecipe) when
// spec.target names what is not there.
CsvColumns find_csv_columns(const CsvReader& reader, const recipe::DatasetSpec& spec, const OpenOptions& options);

}  // namespace skytrain::data
