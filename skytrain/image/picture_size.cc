#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& kind) {
  throw Error(ErrorKind::kData, path, str("is a truncated or damaged ", kind, " picture: its size is missing"),
              "copy or download it again, or remove it");
}

int64_t big_endian(std::span<const uint8_t> bytes, size_t at, size_t count) {
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + i];
  return value;
}

// The frame header (SOFn, ITU T.81 B.2.2) is the first segment with a marker of 0xc0..0xcf that is none of DHT, JPG and
// DAC. Bytes between segments and fill bytes are passed over, as libjpeg does.
Size jpeg_size(std::span<const uint8_t> encoded, const std::string& path) {
  size_t at = 2;
  while (true) {
    while (at < encoded.size() && encoded[at] != 0xff) ++at;
    while (at < encoded.size() && encoded[at] == 0xff) ++at;
    if (at + 8 > encoded.size()) refuse(path, "JPEG");
    const uint8_t marker = encoded[at++];
    if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd7)) continue;  // without content
    if (marker == 0xd9 || marker == 0xda) refuse(path, "JPEG");                      // end, or pixels
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) break;
    at += static_cast<size_t>(big_endian(encoded, at, 2));
  }
  return {.width = big_endian(encoded, at + 5, 2), .height = big_endian(encoded, at + 3, 2)};
}

}  // namespace

Size picture_size(std::span<const uint8_t> encoded, const std::string& path) {
  Size size;
  if (is_jpeg(encoded)) {
    size = jpeg_size(encoded, path);
  } else if (is_png(encoded)) {
    if (encoded.size() < 24) refuse(path, "PNG");
    size = {.width = big_endian(encoded, 16, 4), .height = big_endian(encoded, 20, 4)};
  } else {
    refuse_other_content(encoded, path);
  }
  if (size.width < 1 || size.height < 1) refuse(path, is_jpeg(encoded) ? "JPEG" : "PNG");
  check_picture_size(size.width, size.height, path);
  return size;
}

}  // namespace skytrain::image
