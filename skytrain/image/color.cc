#include "skytrain/image/color.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "skytrain/image/float4.h"

namespace skytrain::image {
namespace {

// ITU-R BT.601 with the digits that torchvision gives them.
constexpr float kRed = 0.2989f, kGreen = 0.587f, kBlue = 0.114f;

// a * b + c, rounded once, as torch adds what has a factor.
float fused(float a, float b, float c) { return static_cast<float>(double{a} * double{b} + double{c}); }

int32_t grey_of(uint32_t pixel) {
  const auto red = static_cast<float>(static_cast<int32_t>(pixel & 255)),
             green = static_cast<float>(static_cast<int32_t>(pixel >> 8 & 255)),
             blue = static_cast<float>(static_cast<int32_t>(pixel >> 16 & 255));
  return static_cast<int32_t>(fused(blue, kBlue, fused(green, kGreen, red * kRed)));
}

uint32_t cut(float value) {
  return static_cast<uint32_t>(static_cast<int32_t>(std::min(std::max(value, 0.0f), 255.0f)));
}

// The same table for all channels.
struct Table {
  uint8_t at[256];
};

void look_up(const Pixels& pixels, const Table& red, const Table& green, const Table& blue) {
  uint8_t* at = pixels.rgbx;
  for (int64_t i = 0; i < pixels.count(); ++i, at += 4) {
    at[0] = red.at[at[0]];
    at[1] = green.at[at[1]];
    at[2] = blue.at[at[2]];
  }
}

template <typename Function>
Table table_of(const Function& function) {
  Table table;
  for (int value = 0; value < 256; ++value) table.at[value] = static_cast<uint8_t>(function(value));
  return table;
}

using Double4 = double __attribute__((vector_size(32)));

struct Histogram {
  int32_t of[3][256] = {};
  explicit Histogram(const Pixels& pixels) {
    const uint8_t* at = pixels.rgbx;
    for (int64_t i = 0; i < pixels.count(); ++i, at += 4) {
      for (int c = 0; c < 3; ++c) ++of[c][at[c]];
    }
  }
};

Table stretching(const int32_t (&histogram)[256]) {
  int low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > low && histogram[high] == 0) --high;
  if (low == high) return table_of([](int value) { return value; });
  const float scale = static_cast<float>(high - low) * (1.0f / 255);
  return table_of([&](int value) { return cut(static_cast<float>(value - low) / scale); });
}

// Pillow's: the values below a value, in steps of the number of pixels (without those of the highest value) / 255.
Table equalizing(const int32_t (&histogram)[256], int64_t pixels) {
  int high = 255;
  while (high > 0 && histogram[high] == 0) --high;
  const int64_t step = (pixels - histogram[high]) / 255;
  if (step == 0) return table_of([](int value) { return value; });
  int64_t below = 0;
  return table_of([&](int value) {
    const int64_t mapped = (below + step / 2) / step;
    below += histogram[value];
    return std::min<int64_t>(mapped, 255);
  });
}

}  // namespace

void adjust_brightness(const Pixels& pixels, double factor) {
  const auto scale = static_cast<float>(factor);
  const Table table = table_of([&](int value) { return cut(static_cast<float>(value) * scale); });
  look_up(pixels, table, table, table);
}

void adjust_contrast(const Pixels& pixels, double factor) {
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels.count(); ++i) {
    uint32_t pixel;
    std::memcpy(&pixel, pixels.rgbx + 4 * i, sizeof pixel);
    sum += grey_of(pixel);
  }
  const auto mean = static_cast<float>(static_cast<double>(sum) / static_cast<double>(pixels.count()));
  const auto scale = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  const Table table = table_of([&](int value) { return cut(fused(mean, rest, static_cast<float>(value) * scale)); });
  look_up(pixels, table, table, table);
}

void adjust_saturation(const Pixels& pixels, double factor) {
  const auto scale = static_cast<float>(factor);
  const auto rest = double{static_cast<float>(1 - factor)};
  for (int64_t i = 0; i < pixels.count(); ++i) {
    uint8_t* const at = pixels.rgbx + 4 * i;
    uint32_t pixel;
    std::memcpy(&pixel, at, sizeof pixel);
    const double grey = rest * grey_of(pixel);
    const Float4 scaled =
        Float4{static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]), 0} * scale;
    const Float4 blended = __builtin_convertvector(__builtin_convertvector(scaled, Double4) + grey, Float4);
    const Int4 cut = to_int(smaller(larger(blended, all(0)), all(255)));
    pixel = static_cast<uint32_t>(cut[0] | cut[1] << 8 | cut[2] << 16);
    std::memcpy(at, &pixel, sizeof pixel);
  }
}

void posterize(const Pixels& pixels, int bits) {
  const int mask = 0xff00 >> bits & 255;
  const Table table = table_of([&](int value) { return value & mask; });
  look_up(pixels, table, table, table);
}

void solarize(const Pixels& pixels, double threshold) {
  const Table table = table_of([&](int value) { return value >= threshold ? 255 - value : value; });
  look_up(pixels, table, table, table);
}

void autocontrast(const Pixels& pixels) {
  const Histogram histogram(pixels);
  look_up(pixels, stretching(histogram.of[0]), stretching(histogram.of[1]), stretching(histogram.of[2]));
}

void equalize(const Pixels& pixels) {
  const Histogram histogram(pixels);
  look_up(pixels, equalizing(histogram.of[0], pixels.count()), equalizing(histogram.of[1], pixels.count()),
          equalizing(histogram.of[2], pixels.count()));
}

ColorChange draw_color_change(const ColorJitter& jitter, KeyedRandom& random) {
  const auto between = [&](const float(&bounds)[2]) {
    return static_cast<float>(random.uniform(bounds[0], bounds[1]));
  };
  ColorChange change;
  for (uint64_t i = 3; i > 0; --i) std::swap(change.order[i], change.order[random.integer(i + 1)]);
  change.brightness = between(jitter.brightness);
  change.contrast = between(jitter.contrast);
  change.saturation = between(jitter.saturation);
  change.hue = between(jitter.hue);
  return change;
}

void change_color(const Pixels& pixels, const ColorChange& change) {
  for (const ColorChange::Step step : change.order) {
    switch (step) {
      case ColorChange::kBrightness:
        if (change.brightness != 1) adjust_brightness(pixels, change.brightness);
        break;
      case ColorChange::kContrast:
        if (change.contrast != 1) adjust_contrast(pixels, change.contrast);
        break;
      case ColorChange::kSaturation:
        if (change.saturation != 1) adjust_saturation(pixels, change.saturation);
        break;
      case ColorChange::kHue:
        if (change.hue != 0) adjust_hue(pixels, change.hue);
        break;
    }
  }
}

}  // namespace skytrain::image
