// skytrain/data/idx_test_data.h
//
// For tests: makes the bytes of IDX files and gzip members.

#pragma once
#include <libdeflate.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skytrain::data {

inline std::string big_endian(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

inline std::string idx_header(const std::vector<uint32_t>& dimensions, char type = 0x08) {
  std::string bytes = {0, 0, type, static_cast<char>(dimensions.size())};
  for (uint32_t d : dimensions) bytes += big_endian(d);
  return bytes;
}

// Pixel p of image n is (31 n + 7 p) mod 256.
inline std::string idx_images(uint32_t samples, uint32_t rows, uint32_t columns) {
  std::string bytes = idx_header({samples, rows, columns});
  for (uint32_t n = 0; n < samples; ++n) {
    for (uint32_t p = 0; p < rows * columns; ++p) bytes += static_cast<char>(31 * n + 7 * p);
  }
  return bytes;
}

// Label of sample n is n mod classes.
inline std::string idx_labels(uint32_t samples, uint32_t classes) {
  std::string bytes = idx_header({samples});
  for (uint32_t n = 0; n < samples; ++n) bytes += static_cast<char>(n % classes);
  return bytes;
}

inline std::string gzip(std::string_view content) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  std::string out(libdeflate_gzip_compress_bound(compressor, content.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor, content.data(), content.size(), out.data(), out.size()));
  libdeflate_free_compressor(compressor);
  return out;
}

}  // namespace skytrain::data
