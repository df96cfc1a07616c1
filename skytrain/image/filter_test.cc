#include "skytrain/image/filter.h"

#include <gtest/gtest.h>

#include <numeric>

namespace skytrain::image {
namespace {

std::vector<double> weights(const Taps16& taps, int64_t i) {
  std::vector<double> values;
  for (int64_t k = 0; k < taps.used(i); ++k) values.push_back(taps.weights(i)[k] / double(1 << taps.precision()));
  return values;
}

TEST(Filter, HalvingTakesFourPixels) {
  Taps16 taps;
  taps.set({Filter::kBilinear, 8, 4, 0, 4, false});
  EXPECT_EQ(taps.first(1), 1);  // center 3, two to each side
  ASSERT_EQ(taps.used(1), 4);
  const double expected[] = {0.125, 0.375, 0.375, 0.125};
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(weights(taps, 1)[k], expected[k], 1e-4);
  // At the edge only the pixels that there are: 3/4, 3/4, 1/4 of their sum.
  EXPECT_EQ(taps.first(0), 0);
  const double edge[] = {3.0 / 7, 3.0 / 7, 1.0 / 7};
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(weights(taps, 0)[k], edge[k], 1e-4);
}

TEST(Filter, SameSizeIsACopy) {
  Taps16 taps;
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
    taps.set({filter, 5, 5, 0, 5, false});
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t k = 0; k < taps.used(i); ++k) {
        EXPECT_EQ(taps.weights(i)[k], taps.first(i) + k == i ? 1 << taps.precision() : 0);
      }
    }
  }
}

TEST(Filter, WeightsSumToOne) {
  Taps16 taps;
  for (const int64_t from : {1, 2, 7, 300, 16384}) {
    for (const int64_t to : {1, 3, 224, 301}) {
      for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
        taps.set({filter, from, to, 0, to, false});
        for (int64_t i = 0; i < to; ++i) {
          const int16_t* const first = taps.weights(i);
          EXPECT_EQ(std::accumulate(first, first + taps.used(i), 0), 1 << taps.precision());
          EXPECT_GE(taps.begin() + taps.first(i), 0);
          EXPECT_LE(taps.begin() + taps.first(i) + taps.used(i), from);
        }
      }
    }
  }
}

TEST(Filter, MirroredIsTheOppositeOrder) {
  Taps16 taps, mirrored;
  taps.set({Filter::kBilinear, 100, 30, 4, 20, false});
  mirrored.set({Filter::kBilinear, 100, 30, 4, 20, true});
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(weights(taps, i), weights(mirrored, 19 - i));
    EXPECT_EQ(taps.first(i), mirrored.first(19 - i));
  }
}

}  // namespace
}  // namespace skytrain::image
