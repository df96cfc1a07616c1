#include "skytrain/image/random_resized_crop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace skytrain::image {
namespace {

TEST(RandomResizedCrop, SidesFollowAreaAndRatio) {
  EXPECT_EQ(sides_of({100, 100}, 0.25, 1), (Size{50, 50}));
  EXPECT_EQ(sides_of({200, 100}, 0.5, 4), (Size{200, 50}));
  EXPECT_EQ(sides_of({100, 80}, 1, 4.0 / 3), (Size{103, 77}));  // sqrt(10666.7) = 103.28, sqrt(6000) = 77.46
  EXPECT_EQ(sides_of({5, 5}, 0.25, 1), (Size{2, 2}));           // 2.5: to the even one
}

TEST(RandomResizedCrop, WithoutAFitTheMiddleIsTaken) {
  EXPECT_EQ(central_region({100, 100}, {}), (Region{0, 0, 100, 100}));
  EXPECT_EQ(central_region({30, 100}, {}), (Region{0, 30, 30, 40}));
  EXPECT_EQ(central_region({100, 30}, {}), (Region{30, 0, 40, 30}));
  EXPECT_EQ(central_region({1, 100}, {}), (Region{0, 49, 1, 1}));
  // Ten tries of a ratio that never fits.
  KeyedRandom random(1);
  EXPECT_EQ(draw_region({1000, 10}, {.min_area = 0.9, .max_area = 1}, random), (Region{493, 0, 13, 10}));
}

TEST(RandomResizedCrop, AreasRatiosAndPlacesAreUniform) {
  constexpr int kDraws = 20000;
  double area = 0, log_ratio = 0, across = 0, down = 0;
  KeyedRandom random(42);
  // Of a square, whatever has at most 3/4 of the area fits.
  const RandomResizedCrop crop{.min_area = 0.1, .max_area = 0.7};
  for (int i = 0; i < kDraws; ++i) {
    const Region r = draw_region({1000, 1000}, crop, random);
    ASSERT_TRUE(lies_within(r, {1000, 1000}));
    area += static_cast<double>(r.width * r.height) * 1e-6;
    const double logarithm = std::log(static_cast<double>(r.width) / static_cast<double>(r.height));
    EXPECT_LE(std::abs(logarithm), std::log(4.0 / 3) + 0.005);
    log_ratio += logarithm;
    across += static_cast<double>(r.left) / static_cast<double>(1000 - r.width);
    down += static_cast<double>(r.top) / static_cast<double>(1000 - r.height);
  }
  EXPECT_NEAR(area / kDraws, 0.4, 0.005);
  EXPECT_NEAR(log_ratio / kDraws, 0, 0.005);
  EXPECT_NEAR(across / kDraws, 0.5, 0.01);
  EXPECT_NEAR(down / kDraws, 0.5, 0.01);
}

TEST(RandomResizedCrop, IsAFunctionOfTheKey) {
  KeyedRandom a(7), b(7), c(8);
  const Region first = draw_region({500, 375}, {}, a);
  EXPECT_EQ(first, draw_region({500, 375}, {}, b));
  EXPECT_NE(first, draw_region({500, 375}, {}, c));
  EXPECT_NE(first, draw_region({500, 375}, {}, a));
}

}  // namespace
}  // namespace skytrain::image
