#include "skytrain/image/orientation.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace skytrain::image {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr int64_t kOrientationTag = 0x0112;
constexpr std::string_view kExifHeader("Exif\0\0", 6);

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin(),
                                                   [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

// Numbers of a TIFF file. REQUIRES that they lie within.
struct Tiff {
  Bytes bytes;
  bool big_endian = false;

  uint64_t number(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at + (big_endian ? i : size - 1 - i)];
    return value;
  }
};

// Bytes of a value of each type (TIFF 6.0, page 15; 13: IFD, 16 to 18: of 64 bits); 0: no type.
size_t type_size(uint64_t type) {
  constexpr uint8_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
  return type < std::size(kSizes) ? kSizes[type] : 0;
}

// The tag's value in the first directory, 0 when there is none. Of several values, and of several tags, the first
// holds. A tag whose values lie outside ends the reading, and one that takes more than the file is passed over: as in
// Pillow.
int64_t tiff_orientation(Bytes bytes) {
  bool known = false;
  for (const char* magic : {"II*\0", "II\0*", "MM\0*", "MM*\0"})
    known |= begins_with(bytes, std::string_view(magic, 4));
  if (!known || bytes.size() < 8) return 0;
  const Tiff tiff{bytes, bytes[0] == 'M'};
  const uint64_t directory = tiff.number(4, 4);
  if (directory + 2 > bytes.size()) return 0;
  const uint64_t entries = tiff.number(directory, 2);
  constexpr size_t kEntry = 12;
  size_t at = directory + 2;
  uint64_t taken = 0;
  for (uint64_t i = 0; i < entries && at + kEntry <= bytes.size(); ++i, at += kEntry) {
    const uint64_t type = tiff.number(at + 2, 2), count = tiff.number(at + 4, 4), size = type_size(type) * count;
    if (size == 0) continue;
    uint64_t value_at = at + 8;
    if (size > 4) {
      taken += size;
      if (taken > bytes.size()) continue;
      value_at = tiff.number(at + 8, 4);
      if (value_at + size > bytes.size()) return 0;
    }
    if (tiff.number(at, 2) != kOrientationTag) continue;
    const bool whole = type == 3 || type == 4 || type == 8 || type == 9;  // SHORT, LONG, SSHORT, SLONG
    return whole ? static_cast<int64_t>(tiff.number(value_at, type_size(type))) : 0;
  }
  return 0;
}

size_t big_endian(Bytes bytes, size_t at, size_t count) {
  return static_cast<size_t>(Tiff{bytes, true}.number(at, count));
}

// Segments up to the first scan (ITU T.81 B.2), read as picture_size() reads them.
Bytes jpeg_exif(Bytes encoded) {
  size_t at = 2;
  while (true) {
    while (at < encoded.size() && encoded[at] != 0xff) ++at;
    while (at < encoded.size() && encoded[at] == 0xff) ++at;
    if (at + 3 > encoded.size()) return {};
    const uint8_t marker = encoded[at++];
    if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd7)) continue;  // without content
    if (marker == 0xd9 || marker == 0xda) return {};                                 // end, or pixels
    const size_t length = big_endian(encoded, at, 2), end = at + length;
    if (length < 2 || end > encoded.size()) return {};
    const Bytes content = encoded.subspan(at + 2, length - 2);
    if (marker == 0xe1 && begins_with(content, kExifHeader)) return content.subspan(kExifHeader.size());
    at = end;
  }
}

// Chunks (PNG 3rd edition, 5.3) to the end of the file, as far as they are whole.
Bytes png_exif(Bytes encoded) {
  constexpr size_t kSignature = 8, kAround = 12;  // length, type and CRC
  Bytes found;
  for (size_t at = kSignature; at + kAround <= encoded.size();) {
    const size_t length = big_endian(encoded, at, 4);
    if (length > encoded.size() - at - kAround) break;
    if (begins_with(encoded.subspan(at + 4), "eXIf")) found = encoded.subspan(at + 8, length);
    at += kAround + length;
  }
  if (begins_with(found, kExifHeader)) found = found.subspan(kExifHeader.size());  // some writers leave it there
  return found;
}

}  // namespace

Orientation orientation_of(int64_t exif_value) {
  switch (exif_value) {
    case 2:
      return {.mirror_x = true};
    case 3:
      return {.mirror_x = true, .mirror_y = true};
    case 4:
      return {.mirror_y = true};
    case 5:
      return {.transposed = true};
    case 6:
      return {.mirror_y = true, .transposed = true};
    case 7:
      return {.mirror_x = true, .mirror_y = true, .transposed = true};
    case 8:
      return {.mirror_x = true, .transposed = true};
    default:
      return {};
  }
}

Orientation exif_orientation(Bytes encoded) {
  if (is_jpeg(encoded)) return orientation_of(tiff_orientation(jpeg_exif(encoded)));
  if (is_png(encoded)) return orientation_of(tiff_orientation(png_exif(encoded)));
  return {};
}

Size upright_size(const Size& stored, const Orientation& orientation) {
  return orientation.transposed ? Size{stored.height, stored.width} : stored;
}

Region stored_region(const Region& upright, const Size& stored, const Orientation& orientation) {
  Region region = upright;
  if (orientation.transposed) region = {upright.top, upright.left, upright.height, upright.width};
  if (orientation.mirror_x) region.left = stored.width - region.left - region.width;
  if (orientation.mirror_y) region.top = stored.height - region.top - region.height;
  return region;
}

Picture turn_upright(const Picture& stored, const Orientation& orientation, uint8_t* out) {
  const Size size = upright_size({stored.width, stored.height}, orientation);
  // From one pixel to the next, and from one line to the next, of the stored picture.
  int64_t right = 3, down = 3 * stored.width;
  const uint8_t* from = stored.pixels;
  if (orientation.mirror_x) {
    from += (stored.width - 1) * right;
    right = -right;
  }
  if (orientation.mirror_y) {
    from += (stored.height - 1) * down;
    down = -down;
  }
  if (orientation.transposed) std::swap(right, down);
  uint8_t* to = out;
  for (int64_t y = 0; y < size.height; ++y, from += down) {
    const uint8_t* pixel = from;
    for (int64_t x = 0; x < size.width; ++x, pixel += right) to = std::copy_n(pixel, 3, to);
  }
  return {.pixels = out, .width = size.width, .height = size.height};
}

}  // namespace skytrain::image
