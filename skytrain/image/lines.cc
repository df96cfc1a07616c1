#include "skytrain/image/lines.h"

#include <algorithm>
#include <iterator>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/cmyk.h"
#include "skytrain/image/decoders.h"
#include "skytrain/image/picture.h"

namespace skytrain::image {
namespace {

void rgb_to_rgbx(const uint8_t* __restrict rgb, int64_t pixels, uint8_t* __restrict rgbx) {
  for (int64_t i = 0; i < pixels; ++i, rgb += 3, rgbx += 4) {
    rgbx[0] = rgb[0];
    rgbx[1] = rgb[1];
    rgbx[2] = rgb[2];
    rgbx[3] = 255;
  }
}

size_t line_bytes(int64_t pixels) { return static_cast<size_t>(4 * pixels) + Lines::kSlack; }

void check_region(const Region& region, const Size& size, const std::string& path) {
  if (lies_within(region, size)) return;
  throw Error(ErrorKind::kInternal, path,
              str("a region of ", region.width, " x ", region.height, " pixels at (", region.left, ", ", region.top,
                  ") is not inside the picture's ", size.width, " x ", size.height));
}

}  // namespace

void JpegLines::start(const Region& region, const std::string& path, ByteBuffer& memory) {
  decoder_.start(JCS_EXT_RGBX, region);
  count_ = next_ = 0;
  left_ = static_cast<int>(region.height);
  const size_t stride = line_bytes(decoder_.line_pixels()), lines = std::size(lines_);
  uint8_t* const bytes = memory.room(stride * lines, path);
  for (size_t i = 0; i < lines; ++i) lines_[i] = bytes + i * stride;
}

const uint8_t* JpegLines::next() {
  if (next_ == count_) {
    next_ = 0;
    count_ = decoder_.read(lines_, std::min(left_, static_cast<int>(std::size(lines_))));
    left_ -= count_;
    for (int i = 0; decoder_.is_cmyk() && i < count_; ++i) {
      cmyk_to_rgb<4>(lines_[i], decoder_.line_pixels(), lines_[i]);
    }
  }
  return lines_[next_++] + 4 * decoder_.pixels_before();
}

void PngLines::start(const Region& region, const std::string& path, ByteBuffer& memory, ByteBuffer& whole_line) {
  region_ = region;
  line_ = memory.room(line_bytes(region.width), path);
  whole_line_ = whole_line.room(static_cast<size_t>(3 * decoder_.size().width), path);
  for (int64_t y = 0; y < region.top; ++y) decoder_.read_line(whole_line_);
}

const uint8_t* PngLines::next() {
  decoder_.read_line(whole_line_);
  rgb_to_rgbx(whole_line_ + 3 * region_.left, region_.width, line_);
  return line_;
}

void PictureLines::start(const Picture& picture, const Region& region, const std::string& path, ByteBuffer& memory) {
  stride_ = 3 * picture.width;
  width_ = region.width;
  from_ = picture.pixels + region.top * stride_ + 3 * region.left;
  line_ = memory.room(line_bytes(width_), path);
}

const uint8_t* PictureLines::next() {
  rgb_to_rgbx(from_, width_, line_);
  from_ += stride_;
  return line_;
}

Lines& open_lines(std::span<const uint8_t> encoded, const std::string& path, const Region& region, Scratch& scratch) {
  Decoders& decoders = scratch.decoders();
  if (is_jpeg(encoded)) {
    decoders.jpeg.open(encoded, path);
    check_region(region, decoders.jpeg.size(), path);
    if (decoders.jpeg.has_end()) {
      decoders.jpeg_lines.start(region, path, scratch.lines);
      if (decoders.jpeg.is_complete()) return decoders.jpeg_lines;
    }
  } else if (is_png(encoded)) {
    decoders.png.open(encoded, path);
    check_region(region, decoders.png.size(), path);
    if (!decoders.png.is_interlaced() && decoders.png.has_end()) {
      decoders.png_lines.start(region, path, scratch.lines, scratch.line);
      return decoders.png_lines;
    }
  }
  const Picture picture = decode_picture(encoded, path, scratch);
  decoders.picture_lines.start(picture, region, path, scratch.lines);
  return decoders.picture_lines;
}

}  // namespace skytrain::image
