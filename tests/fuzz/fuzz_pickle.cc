// The pickle of a zip file of torch.save, in an otherwise good archive of a few storages. They hold nothing but ones,
// so that a tensor which reaches beyond its own is seen.

#include <cstdint>

#include "skytrain/weights/zip_writer.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skytrain;  // NOLINT(google-build-using-namespace)
  fuzz::StringFile file;
  weights::ZipWriter zip(file);
  zip.add("x/data.pkl", std::string_view(reinterpret_cast<const char*>(data), size));
  // The sizes that the storages of the corpus have most often.
  int key = 0;
  for (const size_t bytes : {72, 8, 8, 8, 8, 8, 8, 24, 96, 12, 0, 4}) {
    zip.add("x/data/" + std::to_string(key++), std::string_view(std::string(bytes, '\1')));
  }
  zip.finish();
  fuzz::read_and_write(file.content, 1);
  return 0;
}
