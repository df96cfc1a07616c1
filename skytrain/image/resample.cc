#include "skytrain/image/resample.h"

#include <algorithm>
#include <cmath>

namespace skytrain::image {
namespace {

constexpr int kWeightBits = 22;  // 8 bits of a pixel and 2 of head room for the sum are left of 32
constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr int64_t kChannels = 3;

uint8_t to_pixel(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// Python's round(n / 2): to the even one.
int64_t half_to_even(int64_t n) { return n / 2 + (n % 2 != 0 && n / 2 % 2 != 0 ? 1 : 0); }

int64_t nearest(double x) { return static_cast<int64_t>(std::floor(x + 0.5)); }

// Taps of output pixels begin..begin+count-1 of a line of `from` pixels that is scaled to `to`.
void find_taps(int64_t from, int64_t to, int64_t begin, int64_t count, Taps& taps) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // the triangle reaches this far to each side
  taps.stride = static_cast<size_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(static_cast<size_t>(count));
  taps.count.resize(static_cast<size_t>(count));
  taps.weights.resize(static_cast<size_t>(count) * taps.stride);
  for (int64_t i = 0; i < count; ++i) {
    const double center = (static_cast<double>(begin + i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(nearest(center - support), 0);
    const int64_t end = std::min<int64_t>(nearest(center + support), from);
    const auto triangle = [&](int64_t pixel) {
      return std::max(0.0, 1.0 - std::abs((static_cast<double>(pixel) - center + 0.5) * (1.0 / support)));
    };
    double total = 0;
    for (int64_t pixel = first; pixel < end; ++pixel) total += triangle(pixel);
    int32_t* weights = taps.weights.data() + static_cast<size_t>(i) * taps.stride;
    for (int64_t pixel = first; pixel < end; ++pixel) {
      const double weight = total == 0 ? triangle(pixel) : triangle(pixel) / total;
      *weights++ = static_cast<int32_t>(nearest(weight * (1 << kWeightBits)));
    }
    taps.first[static_cast<size_t>(i)] = static_cast<uint32_t>(first);
    taps.count[static_cast<size_t>(i)] = static_cast<uint32_t>(end - first);
  }
}

// One line of RGB pixels to another.
void scale_line(const uint8_t* __restrict line, const Taps& taps, uint8_t* __restrict out) {
  const int32_t* weights = taps.weights.data();
  for (size_t x = 0; x < taps.first.size(); ++x, weights += taps.stride, out += kChannels) {
    const uint8_t* from = line + kChannels * taps.first[x];
    int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (uint32_t i = 0; i < taps.count[x]; ++i, from += kChannels) {
      red += weights[i] * from[0];
      green += weights[i] * from[1];
      blue += weights[i] * from[2];
    }
    out[0] = to_pixel(red);
    out[1] = to_pixel(green);
    out[2] = to_pixel(blue);
  }
}

void add_line(const uint8_t* __restrict line, int32_t weight, int64_t count, int32_t* __restrict sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] += weight * line[i];
}

// Sums of one line of RGB pixels to one line in each of three planes.
void split_channels(const int32_t* __restrict sums, int64_t width, uint8_t* __restrict out, int64_t plane) {
  for (int64_t x = 0; x < width; ++x, sums += kChannels) {
    for (int64_t c = 0; c < kChannels; ++c) out[c * plane + x] = to_pixel(sums[c]);
  }
}

}  // namespace

void resize_and_crop(const Picture& picture, int64_t resize, int64_t size, Scratch& scratch, const std::string& where,
                     uint8_t* out) {
  const int64_t shorter = std::min(picture.width, picture.height), longer = std::max(picture.width, picture.height);
  const int64_t scaled = resize * longer / shorter;
  const int64_t width = picture.width == shorter ? resize : scaled,
                height = picture.height == shorter ? resize : scaled;
  find_taps(picture.width, width, half_to_even(width - size), size, scratch.columns);
  find_taps(picture.height, height, half_to_even(height - size), size, scratch.rows);

  // Only the lines that the crop needs.
  const Taps& rows = scratch.rows;
  const int64_t begin = rows.first.front(), end = int64_t{rows.first.back()} + rows.count.back();
  const int64_t stride = kChannels * size;
  uint8_t* narrowed = scratch.narrowed.room(static_cast<size_t>((end - begin) * stride), where);
  for (int64_t y = begin; y < end; ++y) {
    scale_line(picture.pixels + y * kChannels * picture.width, scratch.columns, narrowed + (y - begin) * stride);
  }

  const int32_t* weights = rows.weights.data();
  for (int64_t y = 0; y < size; ++y, weights += rows.stride) {
    const size_t at = static_cast<size_t>(y);
    const uint8_t* lines = narrowed + (int64_t{rows.first[at]} - begin) * stride;
    scratch.sums.assign(static_cast<size_t>(stride), kHalf);
    for (uint32_t i = 0; i < rows.count[at]; ++i) {
      add_line(lines + i * stride, weights[i], stride, scratch.sums.data());
    }
    split_channels(scratch.sums.data(), size, out + y * size, size * size);
  }
}

}  // namespace skytrain::image
