#include <cstring>

#include "skytrain/image/color.h"
#include "skytrain/image/float4.h"

namespace skytrain::image {
namespace {

struct Rgb {
  Float4 red, green, blue;
};

Float4 unit(Float4 value) { return smaller(larger(value, all(0)), all(1)); }

// RGB to hue, saturation and value, the hue turned, and back (as Pillow and torchvision convert).
Rgb turn(const Rgb& rgb, float shift) {
  const Float4 zero = all(0), one = all(1);
  const Float4 value = larger(rgb.red, larger(rgb.green, rgb.blue));
  const Float4 range = value - smaller(rgb.red, smaller(rgb.green, rgb.blue));
  const Int4 grey = range == zero;
  const Float4 divisor = choose(grey, one, range), saturation = range / choose(grey, one, value);
  const Float4 r = (value - rgb.red) / divisor, g = (value - rgb.green) / divisor, b = (value - rgb.blue) / divisor;
  Float4 hue = choose(value == rgb.red, b - g, choose(value == rgb.green, 2.0f + r - b, 4.0f + g - r));
  hue = hue * (1.0f / 6) + one;
  hue -= choose(hue >= one, one, zero);
  hue += all(shift);
  hue += choose(hue < zero, one, zero);
  hue -= choose(hue >= one, one, zero);

  const Float4 sixth = hue * 6.0f, part = to_float(to_int(sixth));
  const Float4 product = saturation * (sixth - part), rest = one - saturation;
  const Float4 p = unit(rest * value), q = unit((one - product) * value), t = unit((product + rest) * value);
  // What red, green and blue are in each sixth of the circle; 6 is 0 again.
  const Int4 is[] = {part == all(0), part == all(1), part == all(2), part == all(3), part == all(4), part == all(5)};
  return {.red = choose(is[1], q, choose(is[2] | is[3], p, choose(is[4], t, value))),
          .green = choose(is[1] | is[2], value, choose(is[3], q, choose(is[4] | is[5], p, t))),
          .blue = choose(is[3] | is[4], value, choose(is[2], t, choose(is[5], q, p)))};
}

Float4 channel(Int4 pixels, int shift) { return to_float(pixels >> shift & 255) * (1.0f / 255); }

Int4 byte(Float4 value) { return to_int(value * 255.999f); }

Int4 turn(Int4 pixels, float shift) {
  const Rgb turned = turn({channel(pixels, 0), channel(pixels, 8), channel(pixels, 16)}, shift);
  return byte(turned.red) | byte(turned.green) << 8 | byte(turned.blue) << 16;
}

}  // namespace

void adjust_hue(const Pixels& pixels, double shift) {
  uint8_t* at = pixels.rgbx;
  Int4 four{};
  int64_t left = pixels.count();
  for (; left >= 4; left -= 4, at += sizeof four) {
    std::memcpy(&four, at, sizeof four);
    four = turn(four, static_cast<float>(shift));
    std::memcpy(at, &four, sizeof four);
  }
  std::memcpy(&four, at, static_cast<size_t>(4 * left));
  four = turn(four, static_cast<float>(shift));
  std::memcpy(at, &four, static_cast<size_t>(4 * left));
}

}  // namespace skytrain::image
