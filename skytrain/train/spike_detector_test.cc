#include "skytrain/train/spike_detector.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::train {
namespace {

TEST(SpikeDetector, LearnsFirstThenFindsWhatIsFarAbove) {
  SpikeDetector detector(/*threshold=*/4, /*window=*/20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(std::isinf(detector.limit())) << i;
    detector.observe(2 + 0.1 * std::sin(i));
  }
  EXPECT_GT(detector.limit(), 2.1);
  EXPECT_LT(detector.limit(), 2.6);
}

TEST(SpikeDetector, FollowsALossThatFalls) {
  SpikeDetector detector(4, 20);
  for (int i = 0; i < 300; ++i) {
    const double loss = 5 * std::exp(-i / 60.0) + 0.05 * std::sin(i * 7);
    EXPECT_LT(loss, detector.limit()) << i;
    detector.observe(loss);
  }
  EXPECT_LT(detector.limit(), 1);
}

TEST(SpikeDetector, AConstantLossHasRoomForRounding) {
  SpikeDetector detector(4, 2);
  for (int i = 0; i < 10; ++i) detector.observe(1);
  EXPECT_GT(detector.limit(), 1.001);
  EXPECT_LT(detector.limit(), 1.1);
}

TEST(SpikeDetector, GoesOnFromItsSavedState) {
  SpikeDetector whole(3, 5);
  for (int i = 0; i < 30; ++i) {
    SpikeDetector half(3, 5);
    half.from_json(whole.to_json());
    whole.observe(i % 4);
    half.observe(i % 4);
    ASSERT_EQ(whole.to_json(), half.to_json());
  }
}

}  // namespace
}  // namespace skytrain::train
