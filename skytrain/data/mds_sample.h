// skytrain/data/mds_sample.h
//
// Where the columns of an MDS sample lie. Thread-safe.

#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "skytrain/data/mds_index.h"

namespace skytrain::data {

struct MdsValue {
  uint64_t offset = 0, size = 0;  // bytes, from the sample's beginning
};

// Bytes before a sample's values: a u32 for each column whose size varies.
uint64_t mds_head_bytes(const MdsIndex& index);

// A column of a sample of sample_bytes bytes that begins with `head` (mds_head_bytes() of them). nullopt: the sizes
// don't add up to sample_bytes.
std::optional<MdsValue> find_mds_value(const MdsIndex& index, size_t column, std::span<const uint8_t> head,
                                       uint64_t sample_bytes);

// Little-endian.
inline uint64_t little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace skytrain::data
