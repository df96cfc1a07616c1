// The header of a safetensors file, of the file's size and of one that claims more.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/safetensors.h"

namespace {

void read(std::string_view head, uint64_t file_bytes) {
  using namespace skytrain;  // NOLINT(google-build-using-namespace)
  try {
    const checkpoint::SafetensorsHeader header = checkpoint::parse_safetensors_header(head, file_bytes, "file");
    for (const auto& [name, array] : header.arrays) {
      uint64_t size = checkpoint::dtype_size(array.dtype);
      for (const int64_t extent : array.shape) size *= static_cast<uint64_t>(extent);
      if (array.end < array.begin || array.end > file_bytes || array.end - array.begin != size) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData || error.problem().find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes, size);
  read(bytes, size + 1000);
  // With a length that is right, so that the JSON is looked at.
  std::string header(8, '\0');
  for (size_t i = 0; i < 8; ++i) header[i] = static_cast<char>(size >> (8 * i));
  header += bytes;
  read(header, header.size());
  read(header, header.size() + 32);
  return 0;
}
