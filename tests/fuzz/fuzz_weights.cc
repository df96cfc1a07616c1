// Any file: archives, legacy files (whose pickles no CRC protects), safetensors.

#include <cstdint>

#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  skytrain::fuzz::read_and_write({reinterpret_cast<const char*>(data), size});
  return 0;
}
