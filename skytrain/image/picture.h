// skytrain/image/picture.h
//
// JPEG and PNG files to RGB, whatever their names say. The result is that of Pillow's Image.open(…).convert("RGB"):
//   - greyscale and palettes become RGB; transparency is dropped, not blended with anything
//   - CMYK and YCCK are taken as Adobe writes them (inverted) and multiplied out
//   - 16-bit PNGs keep the upper 8 bits (of greyscale too, which Pillow would turn white)
//   - ICC profiles and gamma are not applied; EXIF orientation is not applied here (orientation.h)
// A picture counts when all of it is there: what is truncated or damaged is refused, never filled up with grey. Bytes
// that are there in excess (before or after a JPEG's end marker, after a PNG's end) do no harm. Thread-safe for
// different scratches.

#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/image/region.h"
#include "skytrain/image/scratch.h"

namespace skytrain::image {

// Against files that unpack to more than a machine holds.
inline constexpr int64_t kMaxPictureSide = 16384;
inline constexpr int64_t kMaxPicturePixels = 200'000'000;

// RGB, 8 bits, lines from the top, 3*width bytes each without gaps.
struct Picture {
  const uint8_t* pixels = nullptr;
  int64_t width = 0, height = 0;  // > 0
};

bool is_jpeg(std::span<const uint8_t> head);
bool is_png(std::span<const uint8_t> head);

// encoded: the whole file, path: its name for errors. The result lies in scratch.decoded. Throws Error(kData, path, …),
// or Error(kEnvironment) for lack of memory.
Picture decode_picture(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch);

// Pixels `region` of the picture, exactly those that decode_picture() gives there, in less time: of a JPEG only what
// the region needs is decoded to pixels, and nothing below it is looked at. So less is checked:
//   - all that comes before the region's last line, as decode_picture() does
//   - that an end marker (JPEG) or end chunk (PNG) follows: a file that was cut is refused wherever it was cut. Without
//     one, the whole picture is decoded and checked.
// Damage below the region that leaves the end in place goes unnoticed; who wants to know uses decode_picture(). The
// result lies in scratch.narrowed. REQUIRES that the region lies within the picture, see picture_size(). Throws as
// decode_picture().
Picture decode_region(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                      Scratch& scratch);

// Width and height, from the header; nothing beyond it is looked at. Throws as decode_picture().
Size picture_size(std::span<const uint8_t> encoded, const std::string& path);

// Of its kinds, for decode_picture().
Picture decode_jpeg(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch);
Picture decode_png(std::span<const uint8_t> encoded, const std::string& path, Scratch& scratch);

// Error(kData) when a picture of this size is not to be unpacked.
void check_picture_size(int64_t width, int64_t height, const std::string& path);

// Error(kData): the content is neither.
[[noreturn]] void refuse_other_content(std::span<const uint8_t> encoded, const std::string& path);

}  // namespace skytrain::image
