// skytrain/image/color.h
//
// Changes of colour: those of torchvision v2 on uint8 tensors (torchvision.transforms.v2.functional), whose float32
// results are cut to [0, 255] and rounded down. A result can differ by one grey level where torch fuses a product with
// a sum. Thread-safe for different pixels.

#pragma once
#include "skytrain/base/mix.h"
#include "skytrain/image/pixels.h"

namespace skytrain::image {

// factor: 0 is black, grey of the mean, grey; 1 changes nothing. REQUIRES factor >= 0.
void adjust_brightness(const Pixels& pixels, double factor);
void adjust_contrast(const Pixels& pixels, double factor);
void adjust_saturation(const Pixels& pixels, double factor);
// shift: of the colour circle, in turns, -0.5..0.5.
void adjust_hue(const Pixels& pixels, double shift);

// Keeps `bits` bits of each channel, 0..8.
void posterize(const Pixels& pixels, int bits);
// Inverts channels that are at least `threshold`.
void solarize(const Pixels& pixels, double threshold);
// Stretches each channel to 0..255.
void autocontrast(const Pixels& pixels);
// Makes each channel's values equally frequent, as Pillow's ImageOps.equalize.
void equalize(const Pixels& pixels);

// torchvision's ColorJitter. The bounds of what is drawn; where both are the neutral value, nothing is done.
struct ColorJitter {
  float brightness[2] = {1, 1}, contrast[2] = {1, 1}, saturation[2] = {1, 1};  // factors, >= 0
  float hue[2] = {0, 0};                                                       // -0.5..0.5
};

// One draw of it.
struct ColorChange {
  enum Step { kBrightness, kContrast, kSaturation, kHue };
  Step order[4] = {kBrightness, kContrast, kSaturation, kHue};
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

// Each uniform in its bounds, in a uniform order.
ColorChange draw_color_change(const ColorJitter& jitter, KeyedRandom& random);
void change_color(const Pixels& pixels, const ColorChange& change);

}  // namespace skytrain::image
