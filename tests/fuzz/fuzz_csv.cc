// A CSV file. The first byte says whether the target is a class or values, and whether the column is that of a header
// or the second of a file without one.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/data/csv.h"
#include "skytrain/data/dataset_test_data.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skytrain;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  MemoryFileSystem fs;
  data::put_file(fs, "/x.csv", std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  recipe::DatasetSpec spec;
  spec.path = "/x.csv";
  spec.target = {data[0] & 2 ? "1" : "y"};
  data::OpenOptions options;
  options.target = data[0] & 1 ? data::TargetKind::kValues : data::TargetKind::kClass;
  try {
    const auto set = data::CsvDataset::open(fs, spec, options);
    const data::DatasetInfo& info = set->info();
    require(info.samples > 0 && info.channels > 0 && info.values == (data[0] & 1));
    for (uint64_t i = 0; i < info.samples; ++i) {
      for (int64_t c = 0; c < info.channels; ++c) require(std::isfinite(set->features(i)[c]));
      if (info.values > 0) {
        require(std::isfinite(set->values(i)[0]));
      } else {
        require(set->label(i) >= 0 && set->label(i) < info.classes);
      }
      require(!set->name(i).empty());
    }
  } catch (const Error& error) {
    const bool expected = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kRecipe;  // no such column
    require(expected && error.problem().find('\n') == std::string::npos);
  }
  return 0;
}
