#include "skytrain/image/resize.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/image/kernels.h"
#include "skytrain/image/lines.h"
#include "skytrain/image/picture.h"

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

// What is done to the stored picture: the upright region, sizes and window lie in it, and lines are mirrored.
struct Plan {
  Region region;
  ResizeSpec resize;
  bool flip = false, upside_down = false;  // of the stored picture's lines
};

Plan plan_for(std::span<const uint8_t> encoded, const std::string& path, const Region& region, const ResizeSpec& resize,
              bool flip, const Orientation& orientation) {
  if (orientation.is_upright()) return {region, resize, flip, false};
  const Size stored = picture_size(encoded, path);
  if (!lies_within(region, upright_size(stored, orientation))) {
    throw Error(ErrorKind::kInternal, path, "a region is not inside the upright picture");
  }
  Plan plan{stored_region(region, stored, orientation), resize, orientation.mirror_x, orientation.mirror_y};
  plan.resize.size = upright_size(resize.size, orientation);
  plan.resize.window = stored_region(kept_window(resize, path), plan.resize.size, orientation);
  // Left and right of the upright picture are, of a transposed one, top and bottom.
  bool& mirrored = orientation.transposed ? plan.upside_down : plan.flip;
  mirrored = mirrored != flip;
  return plan;
}

// Calls write(kernels, y, line) with each line of pixels of the window.
template <typename Write>
void for_each_line(std::span<const uint8_t> encoded, const std::string& path, const Plan& plan, Scratch& scratch,
                   const Write& write) {
  const auto& [region, resize, flip, upside_down] = plan;
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
    write(kernels, upside_down ? window.height - 1 - y : y, blended);
  }
}

void write_line(const Kernels& kernels, const uint8_t* rgbx, int64_t y, const Size& size, const OutputSpec& output,
                void* out) {
  const int64_t step = output.layout == Layout::kChw ? size.width : 3 * size.width;
  kernels.write_line(rgbx, size.width, output, size.width * size.height,
                     static_cast<uint8_t*>(out) + y * step * element_size(output.type));
}

// Pixels of 4 bytes; size: before it. In squares, so that the lines of both lie in the cache.
void transpose(const uint8_t* from, const Size& size, uint8_t* to) {
  constexpr int64_t kSide = 16;
  for (int64_t top = 0; top < size.height; top += kSide) {
    for (int64_t left = 0; left < size.width; left += kSide) {
      const int64_t bottom = std::min(top + kSide, size.height), right = std::min(left + kSide, size.width);
      for (int64_t x = left; x < right; ++x) {
        for (int64_t y = top; y < bottom; ++y) {
          std::memcpy(to + int64_t{kPixel} * (x * size.height + y), from + int64_t{kPixel} * (y * size.width + x),
                      kPixel);
        }
      }
    }
  }
}

// Stores past the caches are not ordered with those that tell another thread of them.
void publish() { _mm_sfence(); }

}  // namespace

Size output_size(const ResizeSpec& resize) {
  return resize.window.width == 0 ? resize.size : Size{resize.window.width, resize.window.height};
}

void decode_resized(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                    const ResizeSpec& resize, const OutputSpec& output, void* out, Scratch& scratch,
                    const Orientation& orientation) {
  const Size size = output_size(resize);
  if (orientation.transposed) {
    const uint8_t* const rgbx = decode_resized_pixels(encoded, path, region, resize, output.flip, scratch, orientation);
    OutputSpec flipped = output;
    flipped.flip = false;
    write_pixels(rgbx, size, flipped, out);
    return;
  }
  const Plan plan = plan_for(encoded, path, region, resize, output.flip, orientation);
  for_each_line(encoded, path, plan, scratch, [&](const Kernels& kernels, int64_t y, const uint8_t* line) {
    write_line(kernels, line, y, size, output, out);
  });
}

uint8_t* decode_resized_pixels(std::span<const uint8_t> encoded, const std::string& path, const Region& region,
                               const ResizeSpec& resize, bool flip, Scratch& scratch, const Orientation& orientation) {
  const Plan plan = plan_for(encoded, path, region, resize, flip, orientation);
  const Size size = output_size(plan.resize);
  const size_t bytes = kPixel * static_cast<size_t>(size.width), all = bytes * static_cast<size_t>(size.height);
  uint8_t* const out = scratch.sample.room(all, path);
  uint8_t* const lines = orientation.transposed ? scratch.narrowed.room(all, path) : out;
  for_each_line(encoded, path, plan, scratch, [&](const Kernels&, int64_t y, const uint8_t* line) {
    std::memcpy(lines + static_cast<size_t>(y) * bytes, line, bytes);
  });
  if (orientation.transposed) transpose(lines, size, out);
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
