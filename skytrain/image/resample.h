// skytrain/image/resample.h
//
// Resizing with antialiasing, as Pillow's Image.resize(BILINEAR) does it (and torchvision's Resize, which calls it): a
// triangle filter as wide as the reduction, first along the lines, then down the columns, with 22-bit weights and a
// rounding to 8 bits after each pass. The result equals that of Pillow 9.4 (newer ones begin with the columns of some
// tall pictures, which differs by one grey level). Thread-safe for different scratches.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/image/picture.h"
#include "skytrain/image/scratch.h"

namespace skytrain::image {

// Scales `picture` so that its shorter side is `resize` (the longer one: resize * longer / shorter, rounded down), cuts
// size x size pixels from the centre (where it can't be in the middle, to the even one of the two places, as Python
// rounds) and writes them as CHW to out, 3*size*size bytes. That is torchvision's Resize(resize), CenterCrop(size).
// REQUIRES: 1 <= size <= resize. where: for Error(kEnvironment) about lack of memory.
void resize_and_crop(const Picture& picture, int64_t resize, int64_t size, Scratch& scratch, const std::string& where,
                     uint8_t* out);

}  // namespace skytrain::image
