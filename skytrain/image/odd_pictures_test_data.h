// skytrain/image/odd_pictures_test_data.h
//
// For tests and fuzzing: a small picture of each kind that decoders treat in a way of its own.

#pragma once
#include <map>
#include <string>

#include "skytrain/image/picture_test_data.h"

namespace skytrain::image {

// Files by name ("420.jpg").
inline std::map<std::string, std::string> odd_pictures() {
  constexpr int64_t kWidth = 43, kHeight = 29;
  const std::string rgb = noise(kWidth, kHeight), grey = noise(kWidth, kHeight, 1), cmyk = noise(kWidth, kHeight, 4);
  const auto jpeg = [&](const JpegOptions& options) {
    const std::string& lines = options.from == JCS_RGB ? rgb : options.from == JCS_GRAYSCALE ? grey : cmyk;
    return encode_jpeg(kWidth, kHeight, lines, options);
  };
  std::map<std::string, std::string> files = {
      {"444.jpg", jpeg({})},
      {"422.jpg", jpeg({.across = 2})},
      {"440.jpg", jpeg({.down = 2})},
      {"420.jpg", jpeg({.across = 2, .down = 2})},
      {"411.jpg", jpeg({.across = 4})},
      {"410.jpg", jpeg({.across = 4, .down = 2})},
      {"rgb.jpg", jpeg({.to = JCS_RGB})},
      {"grey.jpg", jpeg({.from = JCS_GRAYSCALE})},
      {"grey_2x2.jpg", jpeg({.from = JCS_GRAYSCALE, .across = 2, .down = 2})},
      {"cmyk.jpg", jpeg({.from = JCS_CMYK})},
      {"ycck.jpg", jpeg({.from = JCS_CMYK, .to = JCS_YCCK, .across = 2, .down = 2})},
      {"restarts.jpg", jpeg({.restart_interval = 2, .across = 2, .down = 2})},
      {"restart_each.jpg", jpeg({.restart_interval = 1})},
      {"optimized.jpg", jpeg({.quality = 100, .optimized = true, .across = 2})},
      {"coarse.jpg", jpeg({.quality = 5, .across = 2, .down = 2})},
      {"scans.jpg", jpeg({.restart_interval = 3, .across = 2, .down = 2, .interleaved = false})},
      {"progressive.jpg", jpeg({.progressive = true, .across = 2, .down = 2})},
      {"progressive_restarts.jpg", jpeg({.progressive = true, .restart_interval = 4})},
      {"progressive_grey.jpg", jpeg({.from = JCS_GRAYSCALE, .progressive = true})},
      {"arithmetic.jpg", jpeg({.arithmetic = true, .across = 2})},
      {"1x1.jpg", encode_jpeg(1, 1, rgb, {.across = 2, .down = 2})},
  };
  // Taken sideways: an Exif segment of nothing but the orientation (6, in either byte order).
  using namespace std::string_literals;
  const std::string upright = files["420.jpg"];
  files["exif_little.jpg"] = upright.substr(0, 2) +
                             "\xff\xe1\x00\x22"
                             "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s +
                             upright.substr(2);
  files["exif_big.jpg"] = upright.substr(0, 2) +
                          "\xff\xe1\x00\x22"
                          "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"s +
                          upright.substr(2);
  const auto png = [&](const std::string& name, int channels, PngOptions options) {
    const size_t bits = static_cast<size_t>(channels) * static_cast<size_t>(options.depth);
    const std::string lines =
        noise(static_cast<int64_t>((bits * static_cast<size_t>(kWidth) + 7) / 8), kHeight, 1, /*seed=*/3);
    for (const bool interlaced : {false, true}) {
      options.interlaced = interlaced;
      files[name + (interlaced ? "_interlaced.png" : ".png")] = encode_png(kWidth, kHeight, lines, options);
    }
  };
  std::vector<png_color> colours;
  colours.reserve(256);
  for (int i = 0; i < 256; ++i) {
    colours.push_back({static_cast<png_byte>(i), static_cast<png_byte>(3 * i), static_cast<png_byte>(255 - i)});
  }
  const std::vector<png_color> four(colours.begin(), colours.begin() + 4);
  png("rgb", 3, {});
  png("rgb_transparent", 3, {.transparent_colour = true});
  png("rgba", 4, {.type = PNG_COLOR_TYPE_RGB_ALPHA});
  png("rgb16", 3, {.depth = 16});
  png("rgba16", 4, {.type = PNG_COLOR_TYPE_RGB_ALPHA, .depth = 16});
  png("grey1", 1, {.type = PNG_COLOR_TYPE_GRAY, .depth = 1, .transparent_colour = true});
  png("grey4", 1, {.type = PNG_COLOR_TYPE_GRAY, .depth = 4});
  png("grey", 1, {.type = PNG_COLOR_TYPE_GRAY});
  png("grey16", 1, {.type = PNG_COLOR_TYPE_GRAY, .depth = 16});
  png("grey_alpha", 2, {.type = PNG_COLOR_TYPE_GRAY_ALPHA});
  png("palette", 1, {.type = PNG_COLOR_TYPE_PALETTE, .palette = colours, .transparency = {0, 128, 255}});
  png("palette2", 1, {.type = PNG_COLOR_TYPE_PALETTE, .depth = 2, .palette = four});
  return files;
}

}  // namespace skytrain::image
