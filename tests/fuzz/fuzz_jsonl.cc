// A JSONL file as rows of numbers with a class, as rows with values, and as a list of pictures, of which one is there.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/jsonl.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

void read(const FileSystem& fs, bool pictures, data::TargetKind target) {
  recipe::DatasetSpec spec;
  spec.format = "jsonl";
  spec.path = "/set/a.jsonl";
  spec.target = {"y"};
  spec.size = 1;
  if (pictures) spec.image = "file_name";
  try {
    const auto set = data::open_jsonl(fs, spec, {.target = target});
    const data::DatasetInfo& info = set->info();
    for (uint64_t i = 0; i < info.samples; ++i) {
      if (set->name(i).empty()) std::abort();
      if (info.values == 0 && (set->label(i) < 0 || set->label(i) >= info.classes)) std::abort();
      for (int64_t k = 0; k < info.values; ++k) {
        if (!std::isfinite(set->values(i)[k])) std::abort();
      }
      for (int64_t k = 0; k < info.channels && !pictures; ++k) {
        if (!std::isfinite(set->features(i)[k])) std::abort();
      }
    }
  } catch (const Error& error) {
    const bool expected = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kRecipe;
    if (!expected || error.problem().find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  MemoryFileSystem fs;
  data::put_file(fs, "/set/a.jsonl", {reinterpret_cast<const char*>(data), size});
  data::put_file(fs, "/set/1.png", "picture");
  data::put_file(fs, "/elsewhere", "what no name may lead to");
  read(fs, false, data::TargetKind::kClass);
  read(fs, false, data::TargetKind::kValues);
  read(fs, true, data::TargetKind::kClass);
  return 0;
}
