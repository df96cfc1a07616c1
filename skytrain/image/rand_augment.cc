#include "skytrain/image/rand_augment.h"

#include <cmath>

#include "skytrain/image/color.h"

namespace skytrain::image {
namespace {

// torch.linspace(begin, end, bins)[bin], in its float32 steps: a threshold may lie on a pixel's value.
double step_of(double begin, double end, int bin, int bins) {
  const auto first = static_cast<float>(begin), last = static_cast<float>(end);
  const float step = (last - first) / static_cast<float>(bins - 1);
  // Rounded once.
  return static_cast<float>(bin < bins / 2 ? double{first} + double{step} * bin
                                           : double{last} - double{step} * (bins - 1 - bin));
}

bool has_two_directions(Operation operation) {
  return operation >= Operation::kShearX && operation <= Operation::kSharpness;
}

}  // namespace

double magnitude_of(Operation operation, int bin, int bins, const Size& size) {
  // Of the picture's side, in pixels of the 331 of the paper that they come from.
  constexpr double kLongestShift = 150.0 / 331.0;
  switch (operation) {
    case Operation::kShearX:
    case Operation::kShearY:
      return step_of(0, 0.3, bin, bins);
    case Operation::kTranslateX:
      return step_of(0, kLongestShift * static_cast<double>(size.width), bin, bins);
    case Operation::kTranslateY:
      return step_of(0, kLongestShift * static_cast<double>(size.height), bin, bins);
    case Operation::kRotate:
      return step_of(0, 30, bin, bins);
    case Operation::kBrightness:
    case Operation::kColor:
    case Operation::kContrast:
    case Operation::kSharpness:
      return step_of(0, 0.9, bin, bins);
    case Operation::kPosterize:
      return std::nearbyint(8 - static_cast<float>(bin) / (static_cast<float>(bins - 1) / 4));
    case Operation::kSolarize:
      return step_of(1, 0, bin, bins);
    case Operation::kIdentity:
    case Operation::kAutoContrast:
    case Operation::kEqualize:
      break;
  }
  return 0;
}

Augmentation draw_augmentation(const RandAugment& spec, const Size& size, KeyedRandom& random) {
  const auto operation = static_cast<Operation>(random.integer(kOperations));
  double magnitude = magnitude_of(operation, spec.magnitude, spec.bins, size);
  if (has_two_directions(operation) && random.chance(0.5)) magnitude = -magnitude;
  return {operation, magnitude};
}

void augment(const Pixels& pixels, const Augmentation& augmentation, const uint8_t (&fill)[3], ByteBuffer& spare) {
  const double magnitude = augmentation.magnitude;
  const Size size{pixels.width, pixels.height};
  const double factor = 1 + magnitude;
  switch (augmentation.operation) {
    case Operation::kIdentity:
      break;
    case Operation::kShearX:
      return transform_nearest(pixels, shear_x(magnitude, size), fill, spare);
    case Operation::kShearY:
      return transform_nearest(pixels, shear_y(magnitude, size), fill, spare);
    case Operation::kTranslateX:
      return transform_nearest(pixels, translation(std::trunc(magnitude), 0), fill, spare);
    case Operation::kTranslateY:
      return transform_nearest(pixels, translation(0, std::trunc(magnitude)), fill, spare);
    case Operation::kRotate:
      return transform_nearest(pixels, rotation(magnitude), fill, spare);
    case Operation::kBrightness:
      return adjust_brightness(pixels, factor);
    case Operation::kColor:
      return adjust_saturation(pixels, factor);
    case Operation::kContrast:
      return adjust_contrast(pixels, factor);
    case Operation::kSharpness:
      return adjust_sharpness(pixels, factor, spare);
    case Operation::kPosterize:
      return posterize(pixels, static_cast<int>(magnitude));
    case Operation::kSolarize:
      return solarize(pixels, 255 * magnitude);
    case Operation::kAutoContrast:
      return autocontrast(pixels);
    case Operation::kEqualize:
      return equalize(pixels);
  }
}

void rand_augment(const Pixels& pixels, const RandAugment& spec, KeyedRandom& random, ByteBuffer& spare) {
  for (int i = 0; i < spec.operations; ++i) {
    augment(pixels, draw_augmentation(spec, {pixels.width, pixels.height}, random), spec.fill, spare);
  }
}

}  // namespace skytrain::image
