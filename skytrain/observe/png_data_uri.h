// skytrain/observe/png_data_uri.h
//
// Raw pixels of a sample -> a PNG inside a data: URI, which a page shows without another file.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skytrain::observe {

// Inverse of base64(); nullopt when the text is not padded base64 without line breaks.
std::optional<std::string> decode_base64(std::string_view text);

struct Picture {
  int64_t channels = 0, height = 0, width = 0;
  std::string pixels;  // bytes in the order channel, row, column
};

// Greyscale (1 channel) and RGB (3); of 2 channels the first is shown, of more than 3 the first three. A picture with a
// side over kLargestSide is averaged down by a whole number, so that a report stays small. nullopt, with the reason in
// *problem, when the sizes are not between 1 and 65536 or do not fit the number of bytes.
constexpr int64_t kLargestSide = 256;
std::optional<std::string> png_data_uri(const Picture& picture, std::string* problem);

}  // namespace skytrain::observe
