// skytrain/image/lines.h
//
// The lines of a region of a picture, decoded one after the other from the top, so that each is used while it is in
// the cache. Not thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "skytrain/image/region.h"

namespace skytrain::image {

struct Scratch;

class Lines {
 public:
  // Bytes that may be read beyond a line's last pixel; what is in them is not defined.
  static constexpr size_t kSlack = 64;

  virtual ~Lines() = default;
  // The next line: 4 bytes a pixel, red, green, blue and one that is not defined; valid until the next call. REQUIRES
  // that the region has another line. Throws what opening throws.
  virtual const uint8_t* next() = 0;
};

// Reads the header and gets ready. encoded and path stay where they are while the lines are read; the result belongs to
// `scratch`, which is used for nothing else meanwhile. Throws as decode_region() does.
Lines& open_lines(std::span<const uint8_t> encoded, const std::string& path, const Region& region, Scratch& scratch);

}  // namespace skytrain::image
