#include "skytrain/image/picture.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/sniff.h"
#include "skytrain/base/text.h"
#include "skytrain/image/cmyk.h"
#include "skytrain/image/decoders.h"

namespace skytrain::image {
namespace {

constexpr uint8_t kJpegStart[] = {0xff, 0xd8, 0xff};
constexpr uint8_t kPngStart[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

template <size_t size>
bool begins(std::span<const uint8_t> head, const uint8_t (&start)[size]) {
  return head.size() >= size && std::equal(start, start + size, head.begin());
}

}  // namespace

bool is_jpeg(std::span<const uint8_t> head) { return begins(head, kJpegStart); }
bool is_png(std::span<const uint8_t> head) { return begins(head, kPngStart); }

void check_picture_size(int64_t width, int64_t height, const std::string& path) {
  if (width <= kMaxPictureSide && height <= kMaxPictureSide && width * height <= kMaxPicturePixels) return;
  throw Error(ErrorKind::kData, path,
              str("has ", width, " x ", height, " pixels, the limit is ", kMaxPictureSide, " a side and ",
                  kMaxPicturePixels / 1'000'000, " million in all"),
              "scale it down, or remove it");
}

void refuse_other_content(std::span<const uint8_t> encoded, const std::string& path) {
  if (encoded.empty()) {
    throw Error(ErrorKind::kData, path, "is empty (0 bytes)", "copy or download it again, or remove it");
  }
  throw Error(
      ErrorKind::kData, path,
      str("is no JPEG or PNG picture: it ", describe_content(encoded.first(std::min<size_t>(encoded.size(), 512)))),
      "convert it to PNG or JPEG, copy it again, or remove it");
}

Picture decode_picture(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  if (is_jpeg(encoded)) return decode_jpeg(encoded, path, scratch);
  if (is_png(encoded)) return decode_png(encoded, path, scratch);
  refuse_other_content(encoded, path);
}

Picture decode_jpeg(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  JpegDecoder& decoder = scratch.decoders().jpeg;
  decoder.open(encoded, path);
  const auto [width, height] = decoder.size();
  decoder.start(JCS_RGB);
  uint8_t* out = scratch.decoded.room(static_cast<size_t>(3 * width * height), path);
  uint8_t* line = decoder.is_cmyk() ? scratch.line.room(static_cast<size_t>(4 * width), path) : nullptr;
  for (int64_t y = 0; y < height; ++y, out += 3 * width) {
    decoder.read(line != nullptr ? &line : &out, 1);
    if (line != nullptr) cmyk_to_rgb<3>(line, width, out);
  }
  return {.pixels = scratch.decoded.data(), .width = width, .height = height};
}

Picture decode_png(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch) {
  PngDecoder& decoder = scratch.decoders().png;
  decoder.open(encoded, path);
  const auto [width, height] = decoder.size();
  uint8_t* out = scratch.decoded.room(static_cast<size_t>(3 * width * height), path);
  decoder.read_all(out);
  return {.pixels = out, .width = width, .height = height};
}

Picture decode_region(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                      Scratch& scratch) {
  Lines& lines = open_lines(encoded, path, region, scratch);
  // The lines may be those of a whole picture, which lies in scratch.decoded.
  uint8_t* out = scratch.narrowed.room(static_cast<size_t>(3 * region.width * region.height), path);
  for (int64_t y = 0; y < region.height; ++y) {
    const uint8_t* line = lines.next();
    for (int64_t x = 0; x < region.width; ++x, line += 4) out = std::copy_n(line, 3, out);
  }
  return {.pixels = scratch.narrowed.data(), .width = region.width, .height = region.height};
}

}  // namespace skytrain::image
