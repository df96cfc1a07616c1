// skytrain/image/orientation.h
//
// How a picture is stored that a camera took sideways, and how it is turned upright. Thread-safe for different outputs.

#pragma once
#include <cstdint>
#include <span>

#include "skytrain/image/picture.h"
#include "skytrain/image/region.h"

namespace skytrain::image {

// What makes the stored picture upright: it is mirrored, then rows and columns are exchanged.
struct Orientation {
  bool mirror_x = false;  // left and right of the stored picture
  bool mirror_y = false;  // top and bottom of the stored picture
  bool transposed = false;
  bool is_upright() const { return !mirror_x && !mirror_y && !transposed; }
  bool operator==(const Orientation&) const = default;
};

// Of Exif's values 1 to 8 (CIPA DC-008, tag 0x0112); others are upright.
Orientation orientation_of(int64_t exif_value);

// What the file says: the first Exif segment (APP1) of a JPEG, the last eXIf chunk of a PNG, the tag in the first
// directory (TIFF 6.0) in either byte order. As Pillow's ImageOps.exif_transpose, but XMP is not looked at. What can't
// be read of it says nothing, and the picture counts as upright.
Orientation exif_orientation(std::span<const uint8_t> encoded);

// Of the upright picture, when `stored` is that of the stored one; the same function leads back.
Size upright_size(const Size& stored, const Orientation& orientation);

// Where a region of the upright picture lies in the stored one, whose size is `stored`.
Region stored_region(const Region& upright, const Size& stored, const Orientation& orientation);

// Copies the stored picture to `out` as it stands upright: 3 * width * height bytes. The result's pixels are `out`.
Picture turn_upright(const Picture& stored, const Orientation& orientation, uint8_t* out);

}  // namespace skytrain::image
