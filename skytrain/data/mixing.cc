#include "skytrain/data/mixing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "skytrain/data/mix.h"

namespace skytrain::data {
namespace {

// Uniform draws from (0, 1) under a key.
class Draws {
 public:
  explicit Draws(uint64_t key) : key_(key) {}
  double uniform() { return (double(random_bits(key_, next_++) >> 11) + 0.5) * 0x1p-53; }
  double normal() {  // Box and Muller 1958
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t key_, next_ = 0;
};

// log of a draw from Gamma(shape, 1): Marsaglia and Tsang 2000, with their boost for shapes below 1. The logarithm,
// because draws of small shapes underflow.
double log_gamma_draw(double shape, Draws& draws) {
  const double boost = shape < 1 ? std::log(draws.uniform()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(draws.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost + std::log(d * v);
  }
}

// out = share * out + (1 - share) * other
void blend(float* out, const float* other, int64_t count, float share) {
  for (int64_t i = 0; i < count; ++i) out[i] = share * out[i] + (1 - share) * other[i];
}

// Pastes a rectangle of `other` whose area is about 1 - share of the picture; returns the share that is left.
double paste(float* out, const float* other, const PictureShape& shape, double share, Draws& draws) {
  const double side = std::sqrt(1 - share);
  const int64_t half_height = int64_t(0.5 * side * double(shape.height)),
                half_width = int64_t(0.5 * side * double(shape.width));
  const int64_t y = int64_t(draws.uniform() * double(shape.height)), x = int64_t(draws.uniform() * double(shape.width));
  const int64_t top = std::max<int64_t>(0, y - half_height), bottom = std::min(shape.height, y + half_height);
  const int64_t left = std::max<int64_t>(0, x - half_width), right = std::min(shape.width, x + half_width);
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t row = top; row < bottom; ++row) {
      const int64_t at = (c * shape.height + row) * shape.width;
      std::copy(other + at + left, other + at + right, out + at + left);
    }
  return 1 - double((bottom - top) * (right - left)) / double(shape.height * shape.width);
}

}  // namespace

double symmetric_beta(double alpha, uint64_t key) {
  Draws draws(key);
  const double a = log_gamma_draw(alpha, draws), b = log_gamma_draw(alpha, draws);
  return 1 / (1 + std::exp(b - a));
}

Mixing::Mixing(std::optional<double> mixup, std::optional<double> cutmix, uint64_t seed)
    : mixup_(mixup), cutmix_(cutmix), seed_(seed) {}

void Mixing::apply(uint64_t epoch, uint64_t position, const PictureShape& shape, std::span<const int64_t> labels,
                   int64_t classes, float* images, float* targets, std::vector<float>& scratch) const {
  const int64_t samples = int64_t(labels.size()), size = shape.channels * shape.height * shape.width;
  const bool cut = mixup_ && cutmix_ ? make_key(Stream::kMixingKind, seed_, epoch, position) & 1 : cutmix_.has_value();
  scratch.assign(images, images + size);  // the first sample as it was: the last one's partner
  std::fill_n(targets, samples * classes, 0.0f);
  for (int64_t i = 0; i < samples; ++i) {
    float* const own = images + i * size;
    const int64_t partner = i + 1 == samples ? 0 : i + 1;
    const float* const other = partner == 0 ? scratch.data() : own + size;
    const uint64_t key = make_key(Stream::kMixing, seed_, epoch, position + uint64_t(i));
    double share = symmetric_beta(cut ? *cutmix_ : *mixup_, key);
    if (cut) {
      Draws place(mix64(key));
      share = paste(own, other, shape, share, place);
    } else {
      blend(own, other, size, float(share));
    }
    targets[i * classes + labels[i]] += float(share);
    targets[i * classes + labels[partner]] += float(1 - share);
  }
}

}  // namespace skytrain::data
