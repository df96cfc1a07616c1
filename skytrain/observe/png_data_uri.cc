#include "skytrain/observe/png_data_uri.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <vector>

#include "skytrain/base/text.h"

namespace skytrain::observe {

namespace {

constexpr int64_t kMaxSide = 65536;

constexpr std::array<int8_t, 256> make_base64_values() {
  std::array<int8_t, 256> values{};
  for (auto& value : values) value = -1;
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  return values;
}

constexpr auto kBase64Values = make_base64_values();

// Rows of interleaved samples, as PNG wants them.
struct Interleaved {
  int64_t width = 0, height = 0, channels = 0;  // 1 or 3 channels
  std::vector<uint8_t> bytes;
};

// Means over squares of `factor` pixels; what does not fill a square at the right and lower edge is averaged too.
Interleaved interleave(const Picture& picture) {
  const int64_t factor = (std::max(picture.width, picture.height) + kLargestSide - 1) / kLargestSide;
  Interleaved out;
  out.width = (picture.width + factor - 1) / factor;
  out.height = (picture.height + factor - 1) / factor;
  out.channels = picture.channels >= 3 ? 3 : 1;
  out.bytes.resize(static_cast<size_t>(out.width * out.height * out.channels));
  const auto at = [&](int64_t channel, int64_t y, int64_t x) {
    return static_cast<uint8_t>(
        picture.pixels[static_cast<size_t>((channel * picture.height + y) * picture.width + x)]);
  };
  for (int64_t y = 0; y < out.height; ++y) {
    const int64_t y_end = std::min((y + 1) * factor, picture.height);
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t x_end = std::min((x + 1) * factor, picture.width);
      const int64_t area = (y_end - y * factor) * (x_end - x * factor);
      for (int64_t channel = 0; channel < out.channels; ++channel) {
        int64_t sum = 0;
        for (int64_t from_y = y * factor; from_y < y_end; ++from_y) {
          for (int64_t from_x = x * factor; from_x < x_end; ++from_x) sum += at(channel, from_y, from_x);
        }
        out.bytes[static_cast<size_t>((y * out.width + x) * out.channels + channel)] =
            static_cast<uint8_t>((sum + area / 2) / area);
      }
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const bool pad = j >= text.size() - padding;
      const int value = pad ? 0 : kBase64Values[static_cast<unsigned char>(text[j])];
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (int shift = 16; shift >= 0; shift -= 8) out.push_back(static_cast<char>(group >> shift));
  }
  out.resize(out.size() - padding);
  return out;
}

std::optional<std::string> png_data_uri(const Picture& picture, std::string* problem) {
  for (const int64_t side : {picture.channels, picture.height, picture.width}) {
    if (side < 1 || side > kMaxSide) {
      *problem = str("has the size ", picture.channels, " x ", picture.height, " x ", picture.width);
      return std::nullopt;
    }
  }
  const int64_t expected = picture.channels * picture.height * picture.width;
  if (static_cast<uint64_t>(expected) != picture.pixels.size()) {
    *problem = str("holds ", picture.pixels.size(), " bytes of pixels, expected ", expected);
    return std::nullopt;
  }
  const Interleaved image = interleave(picture);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string encoded(size, '\0');
  if (!png_image_write_to_memory(&png, encoded.data(), &size, /*convert_to_8bit=*/0, image.bytes.data(),
                                 /*row_stride=*/0, /*colormap=*/nullptr)) {
    *problem = str("can't be encoded: ", png.message);
    return std::nullopt;
  }
  encoded.resize(size);
  return "data:image/png;base64," + base64(encoded);
}

}  // namespace skytrain::observe
