#include "skytrain/data/progressive_resizing.h"

#include <gtest/gtest.h>

namespace skytrain::data {
namespace {

TEST(ProgressiveResizing, WaitsGrowsAndEndsWithFullSize) {
  const recipe::ProgressiveResizingSpec spec;  // 0.5 up to half of the run, full in the last fifth
  const image::Size full = {224, 160};
  EXPECT_EQ(size_at(spec, full, 0), (image::Size{112, 80}));
  EXPECT_EQ(size_at(spec, full, 0.5), (image::Size{112, 80}));
  EXPECT_EQ(size_at(spec, full, 0.65), (image::Size{168, 120}));  // the middle of what is between
  EXPECT_EQ(size_at(spec, full, 0.8), full);
  EXPECT_EQ(size_at(spec, full, 0.99), full);
}

TEST(ProgressiveResizing, SizesAreMultiplesOfTheIncrementAndNeverAboveTheFullOne) {
  recipe::ProgressiveResizingSpec spec{
      .initial_scale = 0.1, .delay_fraction = 0, .finetune_fraction = 0, .size_increment = 32};
  const image::Size full = {100, 100};
  int64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const int64_t width = size_at(spec, full, i / 100.0).width;
    EXPECT_GE(width, last);
    EXPECT_TRUE(width == 100 || width % 32 == 0) << width;
    EXPECT_GE(width, 32);
    last = width;
  }
  EXPECT_GE(last, 96);
  spec.delay_fraction = 1;
  EXPECT_EQ(size_at(spec, full, 0.999).width, 32);  // no moment at full size
}

}  // namespace
}  // namespace skytrain::data
