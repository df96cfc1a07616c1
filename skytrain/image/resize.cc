#include "skytrain/image/resize.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/kernels.h"
#include "skytrain/image/lines.h"

namespace skytrain::image {
namespace {

constexpr size_t kPixel = 4;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Python's round(n / 2): to the even one.
int64_t half_to_even(int64_t n) { return n / 2 + (n % 2 != 0 && n / 2 % 2 != 0 ? 1 : 0); }

Region kept_window(const ResizeSpec& resize, const std::string& path) {
  Region window = resize.window;
  if (window.width == 0) window = {0, 0, resize.size.width, resize.size.height};
  if (lies_within(window, resize.size)) return window;
  throw Error(ErrorKind::kInternal, path,
              str("a window of ", window.width, " x ", window.height, " pixels at (", window.left, ", ", window.top,
                  ") is not inside the ", resize.size.width, " x ", resize.size.height, " that it is cut from"));
}

// Calls write(y, line) with each line of pixels of the window.
template <typename Write>
void for_each_line(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                   const ResizeSpec& resize, bool flip, Scratch& scratch, const Write& write) {
  const Region window = kept_window(resize, path);
  Taps16 &columns = scratch.fused.columns, &rows = scratch.fused.rows;
  columns.set({resize.filter, region.width, resize.size.width, window.left, window.width, flip});
  columns.set_blocks();
  rows.set({resize.filter, region.height, resize.size.height, window.top, window.height, false});
  const Region needed{.left = region.left + columns.begin(),
                      .top = region.top + rows.begin(),
                      .width = columns.end() - columns.begin(),
                      .height = rows.end() - rows.begin()};
  Lines& lines = open_lines(encoded, path, needed, scratch);

  // Scaled lines, as many as an output needs, and one for the output.
  const int64_t held = rows.longest(), stride = round_up(window.width * int64_t{kPixel}, kLineAlignment);
  uint8_t* const ring = scratch.fused.ring.room(static_cast<size_t>((held + 1) * stride), path);
  uint8_t* const blended = ring + held * stride;
  std::vector<const uint8_t*>& sources = scratch.fused.sources;
  sources.resize(static_cast<size_t>(held));
  const Kernels& kernels = best_kernels();
  int64_t read = 0;
  for (int64_t y = 0; y < window.height; ++y) {
    const int64_t first = rows.first(y), used = rows.used(y);
    for (; read < first + used; ++read) kernels.scale_line(lines.next(), columns, ring + read % held * stride);
    for (int64_t k = 0; k < used; ++k) sources[static_cast<size_t>(k)] = ring + (first + k) % held * stride;
    kernels.blend_lines(sources.data(), rows.weights(y), used, rows.precision(), stride, blended);
    write(kernels, y, blended);
  }
}

void write_line(const Kernels& kernels, const uint8_t* rgbx, int64_t y, const Size& size, const OutputSpec& output,
                void* out) {
  const int64_t step = output.layout == Layout::kChw ? size.width : 3 * size.width;
  kernels.write_line(rgbx, size.width, output, size.width * size.height,
                     static_cast<uint8_t*>(out) + y * step * element_size(output.type));
}

// Stores past the caches are not ordered with those that tell another thread of them.
void publish() { _mm_sfence(); }

}  // namespace

Size output_size(const ResizeSpec& resize) {
  return resize.window.width == 0 ? resize.size : Size{resize.window.width, resize.window.height};
}

void decode_resized(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                    const ResizeSpec& resize, const OutputSpec& output, void* out, Scratch& scratch) {
  const Size size = output_size(resize);
  for_each_line(
      encoded, path, region, resize, output.flip, scratch,
      [&](const Kernels& kernels, int64_t y, const uint8_t* line) { write_line(kernels, line, y, size, output, out); });
}

uint8_t* decode_resized_pixels(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                               const ResizeSpec& resize, bool flip, Scratch& scratch) {
  const Size size = output_size(resize);
  const size_t bytes = kPixel * static_cast<size_t>(size.width);
  uint8_t* const out = scratch.sample.room(bytes * static_cast<size_t>(size.height), path);
  for_each_line(encoded, path, region, resize, flip, scratch, [&](const Kernels&, int64_t y, const uint8_t* line) {
    std::memcpy(out + static_cast<size_t>(y) * bytes, line, bytes);
  });
  return out;
}

void write_pixels(const uint8_t* rgbx, const Size& size, const OutputSpec& output, void* out) {
  const Kernels& kernels = best_kernels();
  std::vector<uint32_t> mirrored(output.flip ? static_cast<size_t>(size.width) : 0);
  for (int64_t y = 0; y < size.height; ++y, rgbx += int64_t{kPixel} * size.width) {
    const uint8_t* line = rgbx;
    if (output.flip) {
      std::memcpy(mirrored.data(), rgbx, mirrored.size() * kPixel);
      std::reverse(mirrored.begin(), mirrored.end());
      line = reinterpret_cast<const uint8_t*>(mirrored.data());
    }
    write_line(kernels, line, y, size, output, out);
  }
  if (output.past_cache) publish();
}

ResizeSpec resize_and_center_crop(const Size& picture, int64_t resize, int64_t size) {
  return cover_and_center_crop(picture, {resize, resize}, {size, size});
}

ResizeSpec cover_and_center_crop(const Size& picture, const Size& cover, const Size& size) {
  ResizeSpec spec;
  if (cover.width * picture.height > cover.height * picture.width) {  // the width decides
    spec.size = {.width = cover.width, .height = cover.width * picture.height / picture.width};
  } else {
    spec.size = {.width = cover.height * picture.width / picture.height, .height = cover.height};
  }
  spec.window = {.left = half_to_even(spec.size.width - size.width),
                 .top = half_to_even(spec.size.height - size.height),
                 .width = size.width,
                 .height = size.height};
  return spec;
}

}  // namespace skytrain::image
