// skytrain/image/resize.h
//
// From an encoded picture to a sample of a batch in one pass: each line of the region is scaled while it is in the
// cache, and each line of the sample is normalised and written as soon as the lines that it needs are there. No picture
// is ever held whole. The pixels are those of torchvision v2's resize(antialias=True) of uint8 tensors within one grey
// level (one pixel value in 2000 differs), and of Pillow's Image.resize within two: 8 bits after each direction, with
// weights of 16 bits. Elements are computed from the rounded pixels. The bits do not depend on the machine. Thread-safe
// for different scratches.

#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/image/filter.h"
#include "skytrain/image/orientation.h"
#include "skytrain/image/output.h"
#include "skytrain/image/region.h"
#include "skytrain/image/scratch.h"

namespace skytrain::image {

// A region is scaled to `size`, of which `window` is kept: the whole, when its width is 0. What the window does not
// need is not computed.
struct ResizeSpec {
  Size size;
  Region window;
  Filter filter = Filter::kBilinear;
};

// Of the kept window.
Size output_size(const ResizeSpec& resize);

// Writes 3 * height * width elements of the window to `out`. The region is one of the picture (see picture_size()), and
// is checked as decode_region() checks it. Where an orientation is given, all that is said of region, sizes and window
// is of the upright picture: its region is found in the stored one, scaled there, and turned as it is written. So no
// more is decoded, and pixels differ by one level at most from those of a picture that was turned first. Once scratch
// has seen its largest picture, nothing is allocated. Throws as decode_region() does; Error(kInternal) when region or
// window lie outside.
void decode_resized(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                    const ResizeSpec& resize, const OutputSpec& output, void* out, Scratch& scratch,
                    const Orientation& orientation = {});

// The same up to the pixels, for augmentations that need all of them: 4 bytes each (red, green, blue and one that is
// not defined), lines without gaps, in scratch.sample.
uint8_t* decode_resized_pixels(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                               const ResizeSpec& resize, bool flip, Scratch& scratch,
                               const Orientation& orientation = {});

// What is left then. output.flip is for pixels that are not flipped yet.
void write_pixels(const uint8_t* rgbx, const Size& size, const OutputSpec& output, void* out);

// torchvision's Resize(resize) and CenterCrop(size) of a picture: the shorter side becomes `resize` (the longer one
// resize * longer / shorter, rounded down), and size x size pixels of the middle are kept (halves as Python rounds).
// REQUIRES: 1 <= size <= resize.
ResizeSpec resize_and_center_crop(const Size& picture, int64_t resize, int64_t size);

// The same for any shape: the picture is scaled so that it just covers `cover`, and `size` is kept of its middle.
// REQUIRES: 1 <= size <= cover, in both directions.
ResizeSpec cover_and_center_crop(const Size& picture, const Size& cover, const Size& size);

}  // namespace skytrain::image
