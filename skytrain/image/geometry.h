// skytrain/image/geometry.h
//
// Changes that look at other pixels: those of torchvision v2 on uint8 tensors with InterpolationMode.NEAREST. `spare`
// keeps a copy of the pixels meanwhile. Thread-safe for different pixels and spares.

#pragma once
#include "skytrain/image/pixels.h"
#include "skytrain/image/region.h"
#include "skytrain/image/scratch.h"

namespace skytrain::image {

// Where an output pixel comes from, both measured from the picture's centre, in pixels:
// x = a * x' + b * y' + c, y = d * x' + e * y' + f.
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

// torchvision's affine(…, translate), to the right and down.
Affine translation(double right, double down);
// rotate(angle), in degrees, counter-clockwise.
Affine rotation(double degrees);
// affine(…, shear, center=[0, 0]): of `size`, by a tangent along x or along y, with the first line or column fixed.
Affine shear_x(double tangent, const Size& size);
Affine shear_y(double tangent, const Size& size);

// The nearest pixel (halves to the even one), or `fill` where there is none.
void transform_nearest(const Pixels& pixels, const Affine& affine, const uint8_t (&fill)[3], ByteBuffer& spare);

// A blend of the picture with a smoothed one (3 x 3, the middle counts five times): 0 is the smoothed one, 1 changes
// nothing. The outermost pixels stay. REQUIRES factor >= 0.
void adjust_sharpness(const Pixels& pixels, double factor, ByteBuffer& spare);

}  // namespace skytrain::image
