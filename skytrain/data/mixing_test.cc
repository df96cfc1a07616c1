#include "skytrain/data/mixing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace skytrain::data {
namespace {

constexpr PictureShape kShape{2, 6, 5};
constexpr int64_t kSize = 2 * 6 * 5;

struct Mixed {
  std::vector<float> images, targets;
};

// Sample s is a picture of the value 100 * s and has the class s % 3.
Mixed mix(const Mixing& mixing, uint64_t epoch, uint64_t position, int64_t samples) {
  Mixed mixed{std::vector<float>(samples * kSize), std::vector<float>(samples * 3)};
  std::vector<int64_t> labels(samples);
  std::vector<float> scratch;
  for (int64_t s = 0; s < samples; ++s) {
    labels[s] = s % 3;
    std::fill_n(mixed.images.begin() + s * kSize, kSize, float(100 * s));
  }
  mixing.apply(epoch, position, kShape, labels, 3, mixed.images.data(), mixed.targets.data(), scratch);
  return mixed;
}

TEST(Mixing, MixupBlendsPicturesAndTargetsByTheSameShare) {
  const int64_t samples = 5;
  const Mixed mixed = mix(Mixing(0.8, std::nullopt, 3), 1, 40, samples);
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t partner = (s + 1) % samples;
    const float share = mixed.targets[s * 3 + s % 3];
    ASSERT_GT(share, 0);
    if (s % 3 == partner % 3) continue;
    EXPECT_NEAR(mixed.targets[s * 3 + partner % 3], 1 - share, 1e-6);
    for (int64_t k = 0; k < kSize; ++k)
      ASSERT_NEAR(mixed.images[s * kSize + k], share * 100 * s + (1 - share) * 100 * partner, 1e-3);
  }
}

TEST(Mixing, CutmixReplacesARectangleAndCountsItsPixels) {
  const int64_t samples = 7;
  const Mixed mixed = mix(Mixing(std::nullopt, 1.0, 5), 0, 0, samples);
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t partner = (s + 1) % samples;
    int64_t own = 0, other = 0;
    for (int64_t k = 0; k < kSize; ++k) {
      own += mixed.images[s * kSize + k] == 100.0f * float(s);
      other += mixed.images[s * kSize + k] == 100.0f * float(partner);
    }
    ASSERT_EQ(own + other, kSize);
    if (s % 3 == partner % 3) continue;
    EXPECT_NEAR(mixed.targets[s * 3 + s % 3], double(own) / kSize, 1e-6);
    EXPECT_NEAR(mixed.targets[s * 3 + partner % 3], double(other) / kSize, 1e-6);
  }
}

TEST(Mixing, TheSameSlotIsMixedAlikeAndAnotherEpochOtherwise) {
  const Mixing mixing(1.0, 1.0, 9);
  EXPECT_EQ(mix(mixing, 2, 8, 4).images, mix(mixing, 2, 8, 4).images);
  EXPECT_NE(mix(mixing, 2, 8, 4).targets, mix(mixing, 3, 8, 4).targets);
  EXPECT_NE(mix(mixing, 2, 8, 4).targets, mix(mixing, 2, 12, 4).targets);
}

TEST(Mixing, ASlotOfOneSampleStaysAsItIs) {
  const Mixed mixed = mix(Mixing(0.4, std::nullopt, 1), 0, 3, 1);
  for (const float pixel : mixed.images) EXPECT_NEAR(pixel, 0, 1e-6);
  EXPECT_FLOAT_EQ(mixed.targets[0], 1);
}

// Mean 1/2 and variance 1 / (4 (2 alpha + 1)), also where the gamma draws underflow.
TEST(SymmetricBeta, HasTheMomentsOfItsDistribution) {
  for (const double alpha : {0.01, 0.2, 1.0, 4.0}) {
    const int draws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const double value = symmetric_beta(alpha, uint64_t(i) * 7919 + 1);
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 1);
      sum += value;
      squares += (value - 0.5) * (value - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / draws, 0.5, 5 * std::sqrt(variance / draws)) << alpha;
    EXPECT_NEAR(squares / draws, variance, 0.03 * variance + 0.001) << alpha;
  }
}

}  // namespace
}  // namespace skytrain::data
