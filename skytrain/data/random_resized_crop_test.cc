#include "skytrain/data/random_resized_crop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "skytrain/data/mix.h"

namespace skytrain::data {
namespace {

constexpr uint64_t kDraws = 20000;

TEST(RandomResizedCrop, LiesWithinAndFollowsTheDistribution) {
  const RandomResizedCrop crop(recipe::TransformSpec{});
  const image::Size size{500, 375};
  double area = 0, log_ratio = 0, left = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const image::Region region = crop.region(size, make_key(Stream::kResizedCrop, 1, 2, i));
    ASSERT_TRUE(image::lies_within(region, size));
    const double share = double(region.width * region.height) / double(size.width * size.height);
    ASSERT_GT(share, 0.079);
    ASSERT_LE(share, 1);
    area += share;
    log_ratio += std::log(double(region.width) / double(region.height));
    left += double(region.left) / double(std::max<int64_t>(1, size.width - region.width));
  }
  // Means of 60,000 draws of torchvision 0.26's get_params for this size. Large areas fit at
  // ratios only, and are drawn again at others.
  EXPECT_NEAR(area / kDraws, 0.4329, 0.006);
  EXPECT_NEAR(log_ratio / kDraws, 0.0308, 0.005);
  EXPECT_NEAR(left / kDraws, 0.5, 0.01);
}

TEST(RandomResizedCrop, IsAFunctionOfItsKey) {
  const RandomResizedCrop crop(recipe::TransformSpec{});
  EXPECT_EQ(crop.region({64, 48}, 7), crop.region({64, 48}, 7));
  EXPECT_NE(crop.region({64, 48}, 7), crop.region({64, 48}, 8));
}

// What torchvision takes when nothing fits, computed by hand: 1000x10 is wider than 4/3, so all 10 rows and 13 columns.
TEST(RandomResizedCrop, FallsBackToTheMiddle) {
  const RandomResizedCrop crop(recipe::TransformSpec{.scale = {0.9, 1}, .ratio = {}});
  EXPECT_EQ(crop.region({1000, 10}, 3), (image::Region{493, 0, 13, 10}));
  EXPECT_EQ(crop.region({10, 1000}, 3), (image::Region{0, 493, 10, 13}));
  EXPECT_EQ(crop.region({1, 1}, 3), (image::Region{0, 0, 1, 1}));
}

TEST(RandomResizedCrop, TakesItsBoundsFromTheRecipe) {
  const RandomResizedCrop crop(recipe::TransformSpec{.scale = {0.25, 0.25}, .ratio = {1, 1}});
  for (uint64_t key = 0; key < 100; ++key) {
    const image::Region region = crop.region({200, 200}, key);
    EXPECT_EQ(region.width, 100);
    EXPECT_EQ(region.height, 100);
  }
}

}  // namespace
}  // namespace skytrain::data
