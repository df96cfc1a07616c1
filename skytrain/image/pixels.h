// skytrain/image/pixels.h

#pragma once
#include <cstdint>

namespace skytrain::image {

// What augmentations work on, in place: 4 bytes a pixel (red, green, blue and one without meaning), lines without gaps,
// as decode_resized_pixels() gives them. Not owned.
struct Pixels {
  uint8_t* rgbx = nullptr;
  int64_t width = 0, height = 0;
  int64_t count() const { return width * height; }
};

}  // namespace skytrain::image
