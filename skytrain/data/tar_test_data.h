// skytrain/data/tar_test_data.h
//
// For tests: makes the bytes of tar archives.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skytrain/data/tar.h"

namespace skytrain::data {

inline std::string tar_padding(std::string_view content) {
  return std::string(static_cast<size_t>(tar_padded(content.size()) - content.size()), '\0');
}

inline std::string tar_member(std::string_view name, std::string_view content) {
  return tar_header(name, content.size()) + std::string(content) + tar_padding(content);
}

inline std::string tar_end() { return std::string(2 * kTarBlock, '\0'); }

inline std::string tar_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  for (const auto& [name, content] : members) bytes += tar_member(name, content);
  return bytes + tar_end();
}

// After its fields were changed.
inline void correct_checksum(std::string& header) {
  for (size_t i = 148; i < 156; ++i) header[i] = ' ';
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>(header[i]);
  for (size_t i = 6; i-- > 0; sum >>= 3) header[148 + i] = static_cast<char>('0' + (sum & 7));
  header[154] = '\0';
}

// A member of another type ('L', 'x', '1', …).
inline std::string tar_special(char type, std::string_view content, std::string_view name = "special") {
  std::string bytes = tar_member(name, content);
  bytes[156] = type;
  correct_checksum(bytes);
  return bytes;
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

}  // namespace skytrain::data
