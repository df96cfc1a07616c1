#include "skytrain/image/random_erasing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace skytrain::image {
namespace {

TEST(RandomErasing, RegionsAreThoseOfTheSpec) {
  KeyedRandom random(1);
  const Size sample{224, 200};
  int erased = 0;
  double area = 0;
  for (int i = 0; i < 8000; ++i) {
    const Region region = draw_erasure({.probability = 0.25}, sample, random);
    if (region.width == 0) continue;
    ++erased;
    ASSERT_TRUE(lies_within(region, sample));
    const double part = static_cast<double>(region.width * region.height) / (224 * 200);
    ASSERT_GT(part, 0.019);
    ASSERT_LT(part, 0.335);
    const double ratio = static_cast<double>(region.height) / static_cast<double>(region.width);
    ASSERT_GT(ratio, 0.29);
    ASSERT_LT(ratio, 3.45);
    area += part;
  }
  EXPECT_NEAR(erased, 2000, 150);
  EXPECT_NEAR(area / erased, 0.17, 0.01);
}

TEST(RandomErasing, WithoutAFitNothingIsErased) {
  KeyedRandom random(2);
  const RandomErasing whole{.probability = 1, .min_area = 1, .max_area = 1, .min_ratio = 1, .max_ratio = 1};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(draw_erasure(whole, {32, 32}, random), Region{});
}

TEST(RandomErasing, WritesTheRegionAlone) {
  const Size sample{5, 4};
  const Region region{.left = 1, .top = 2, .width = 3, .height = 1};
  const RandomErasing erasing{.value = {-1, 0.5f, 2}};
  KeyedRandom random(3);
  for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
    std::vector<float> elements(60, 7);
    erase(region, erasing, sample, {.layout = layout}, random, elements.data());
    for (size_t c = 0; c < 3; ++c) {
      for (size_t y = 0; y < 4; ++y) {
        for (size_t x = 0; x < 5; ++x) {
          const bool inside = y == 2 && x >= 1 && x < 4;
          const size_t at = layout == Layout::kChw ? (c * 4 + y) * 5 + x : (y * 5 + x) * 3 + c;
          EXPECT_EQ(elements[at], inside ? erasing.value[c] : 7);
        }
      }
    }
    std::vector<uint16_t> halves(60, 0x40e0);
    erase(region, erasing, sample, {.layout = layout, .type = ElementType::kBfloat16}, random, halves.data());
    EXPECT_EQ(halves[layout == Layout::kChw ? 2 * 5 + 1 : (2 * 5 + 1) * 3], 0xbf80);  // -1
    EXPECT_EQ(halves[0], 0x40e0);
  }
}

TEST(RandomErasing, NoiseIsNormal) {
  const Size sample{100, 100};
  std::vector<float> elements(30000, 7);
  KeyedRandom random(4);
  erase({0, 0, 100, 99}, {.noise = true}, sample, {}, random, elements.data());
  double sum = 0, squares = 0, beyond = 0;
  for (size_t i = 0; i < 9900; ++i) {
    sum += elements[i];
    squares += double{elements[i]} * elements[i];
    beyond += std::abs(elements[i]) > 1.96f ? 1 : 0;
  }
  EXPECT_NEAR(sum / 9900, 0, 0.04);
  EXPECT_NEAR(squares / 9900, 1, 0.06);
  EXPECT_NEAR(beyond / 9900, 0.05, 0.01);
  EXPECT_EQ(elements[9900], 7);
  EXPECT_NE(elements[0], elements[1]);
}

}  // namespace
}  // namespace skytrain::image
