#include "skytrain/data/fingerprint.h"

#include <algorithm>
#include <array>

namespace skytrain::data {
namespace {

void put(uint64_t number, std::byte* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(number >> (8 * i));
}

}  // namespace

void FingerprintHash::number(uint64_t number) {
  std::array<std::byte, 8> bytes;
  put(number, bytes.data());
  hash_.update(bytes);
}

void FingerprintHash::numbers(std::span<const int32_t> numbers) {
  std::array<std::byte, 8 * 1024> block;
  while (!numbers.empty()) {
    const size_t count = std::min(numbers.size(), block.size() / 8);
    for (size_t i = 0; i < count; ++i) put(static_cast<uint64_t>(int64_t{numbers[i]}), block.data() + 8 * i);
    hash_.update(std::span(block).first(8 * count));
    numbers = numbers.subspan(count);
  }
}

void FingerprintHash::text(std::string_view text) {
  number(text.size());
  hash_.update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string fingerprint(uint64_t samples, int64_t channels, int64_t height, int64_t width,
                        std::span<const uint8_t> pixels, std::span<const int32_t> labels) {
  FingerprintHash hash;
  hash.number(samples);
  hash.number(static_cast<uint64_t>(channels));
  hash.number(static_cast<uint64_t>(height));
  hash.number(static_cast<uint64_t>(width));
  hash.bytes(std::as_bytes(pixels));
  hash.numbers(labels);
  return hash.hex();
}

}  // namespace skytrain::data
