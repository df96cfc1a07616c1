// skytrain/image/png_writer.h
//
// Pixels to the bytes of a PNG file, without loss. Thread-safe.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/image/region.h"

namespace skytrain::image {

// pixels: lines from the top without gaps, 1 (grey) or 3 (RGB) bytes each. where: for errors. Throws Error(kInternal)
// for another number of channels or a size that PNG does not have, Error(kEnvironment) for lack of memory.
std::string png_file(const uint8_t* pixels, const Size& size, int64_t channels, const std::string& where);

}  // namespace skytrain::image
