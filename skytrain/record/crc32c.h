// skytrain/record/crc32c.h
//
// CRC-32C (Castagnoli), the checksum of TFRecord files. A table of bytes: an event is some fifty bytes long.

#pragma once
#include <cstdint>
#include <string_view>

namespace skytrain::record {

uint32_t crc32c(std::string_view bytes);

// As TFRecord stores it: rotated and offset, so that the checksum of data that holds checksums stays a good one.
inline uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace skytrain::record
