// skytrain/weights/little_endian.h
//
// Little-endian numbers in bytes. The caller has checked that they are there.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace skytrain::weights {

template <class Unsigned>
Unsigned load_le(const std::byte* at) {
  Unsigned value = 0;
  for (size_t i = sizeof(Unsigned); i-- > 0;) {
    value = static_cast<Unsigned>(static_cast<uint64_t>(value) << 8 | static_cast<uint8_t>(at[i]));
  }
  return value;
}

template <class Unsigned>
void append_le(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof(Unsigned); ++i) out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace skytrain::weights
