// A tar archive as a shard of a data set: its members, and the samples that they make.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/data/webdataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skytrain;  // NOLINT(google-build-using-namespace)
  MemoryFileSystem fs;
  const auto file = fs.open_write("/x.tar", FileSystem::Mode::kTruncate);
  file->append(std::string_view(reinterpret_cast<const char*>(data), size));
  file->close();
  recipe::DatasetSpec spec;
  spec.format = "webdataset";
  spec.path = "/x.tar";
  spec.size = 1;
  try {
    const auto set = data::Webdataset::open(fs, spec, {});
    data::Scratch scratch;
    for (uint64_t i = 0; i < set->info().samples; ++i) {
      if (set->encoded(i, scratch).size() > size || set->label(i) < 0 || set->name(i).empty()) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData || error.problem().find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
