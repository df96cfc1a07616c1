// skytrain/data/fingerprint.h
//
// The identity of a data set's content: equal for equal samples in equal order, whatever files they came from. Recorded
// with runs, and compared when one is resumed: what is hashed for a format never changes (docs/data.md says what).

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "skytrain/base/hash.h"

namespace skytrain::data {

// XXH3-128 over numbers (u64 little-endian each), bytes, and texts (their length as a number, then their bytes).
class FingerprintHash {
 public:
  void number(uint64_t number);
  void numbers(std::span<const int32_t> numbers);  // as i64 each
  void text(std::string_view text);
  void bytes(std::span<const std::byte> bytes) { hash_.update(bytes); }
  std::string hex() const { return hash_.hex(); }

 private:
  Xxh128 hash_;
};

// Of pictures: the numbers samples, channels, height and width, all pixels (uint8, NCHW) and all labels.
std::string fingerprint(uint64_t samples, int64_t channels, int64_t height, int64_t width,
                        std::span<const uint8_t> pixels, std::span<const int32_t> labels);

}  // namespace skytrain::data
