// skytrain/data/contact_sheet.h
//
// A few pictures of each class on one sheet, to look at.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/data/dataset.h"
#include "skytrain/data/inspection.h"

namespace skytrain::data {

struct ContactSheet {
  std::string png;              // the file
  std::vector<int64_t> labels;  // of the rows, from the top
  int64_t width = 0, height = 0;
};

// A row for each class that has samples, of the lowest kSheetRows labels, and in it up to kSheetColumns of its samples
// at even distances, whole, upright where the set was opened so. Broken ones come last, up to kSheetBroken of a class,
// and are red. The same set gives the same sheet. inspection: of this set. Throws Error(kData) for a set without
// pictures, Error(kEnvironment) for disk trouble or lack of memory.
ContactSheet make_contact_sheet(const Dataset& dataset, const Inspection& inspection);

inline constexpr size_t kSheetRows = 64, kSheetColumns = 10, kSheetBroken = 3;
inline constexpr int64_t kSheetCell = 96, kSheetGap = 4;  // pixels

}  // namespace skytrain::data
