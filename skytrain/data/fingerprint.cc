#include "skytrain/data/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "skytrain/base/hash.h"

namespace skytrain::data {
namespace {

void put(uint64_t number, std::byte* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(number >> (8 * i));
}

}  // namespace

std::string fingerprint(uint64_t samples, int64_t channels, int64_t height, int64_t width,
                        std::span<const uint8_t> pixels, std::span<const int32_t> labels) {
  Xxh128 hash;
  std::array<std::byte, 8 * 1024> block;
  put(samples, block.data());
  put(static_cast<uint64_t>(channels), block.data() + 8);
  put(static_cast<uint64_t>(height), block.data() + 16);
  put(static_cast<uint64_t>(width), block.data() + 24);
  hash.update(std::span(block).first(32));
  hash.update(std::as_bytes(pixels));
  while (!labels.empty()) {
    const size_t count = std::min(labels.size(), block.size() / 8);
    for (size_t i = 0; i < count; ++i) put(static_cast<uint64_t>(int64_t{labels[i]}), block.data() + 8 * i);
    hash.update(std::span(block).first(8 * count));
    labels = labels.subspan(count);
  }
  return hash.hex();
}

}  // namespace skytrain::data
