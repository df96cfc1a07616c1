// skytrain/image/rand_augment.h
//
// RandAugment (Cubuk et al. 2019, arXiv 1909.13719) as torchvision v2's: some operations out of fourteen, one after the
// other, all with the same magnitude. Thread-safe for different pixels and spares.

#pragma once
#include <cstdint>

#include "skytrain/base/mix.h"
#include "skytrain/image/geometry.h"
#include "skytrain/image/pixels.h"

namespace skytrain::image {

enum class Operation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kOperations = 14;

struct RandAugment {
  int operations = 2;  // in a row, >= 0
  int magnitude = 9;   // 0..bins-1
  int bins = 31;       // >= 2
  uint8_t fill[3] = {};
};

// An operation and what is drawn with it: tangent, pixels, degrees, factor - 1, bits or part of 255, as the operation
// takes them.
struct Augmentation {
  Operation operation = Operation::kIdentity;
  double magnitude = 0;
  bool operator==(const Augmentation&) const = default;
};

// The magnitude of bin `bin` of `bins` of a picture of this size, without the sign that is drawn.
double magnitude_of(Operation operation, int bin, int bins, const Size& size);

// The i-th of them: a uniform operation, and with those that have two directions either of them.
Augmentation draw_augmentation(const RandAugment& spec, const Size& size, KeyedRandom& random);

void augment(const Pixels& pixels, const Augmentation& augmentation, const uint8_t (&fill)[3], ByteBuffer& spare);

// All of it.
void rand_augment(const Pixels& pixels, const RandAugment& spec, KeyedRandom& random, ByteBuffer& spare);

}  // namespace skytrain::image
