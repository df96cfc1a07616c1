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

// With action: skip no step was made any more once the loss had risen for good: each one was a spike.
TEST(SpikeDetector, LearnsAnewAfterTenSpikesInARow) {
  SpikeDetector detector(4, 5);
  const auto again = [&] {  // as a resume does
    const Json saved = detector.to_json();
    detector = SpikeDetector(4, 5);
    detector.from_json(saved);
  };
  for (int i = 0; i < 8; ++i) detector.observe(1 + 0.01 * (i % 2));
  for (uint64_t i = 0; i < SpikeDetector::kMostInARow - 1; ++i) {
    EXPECT_FALSE(detector.observe_spike());
    again();
  }
  detector.observe(1);  // not in a row
  for (uint64_t i = 1; i <= SpikeDetector::kMostInARow; ++i) {
    EXPECT_LT(detector.limit(), 2);
    EXPECT_EQ(detector.observe_spike(), i == SpikeDetector::kMostInARow) << i;
    again();
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(std::isinf(detector.limit())) << i;
    detector.observe(5 + 0.01 * (i % 2));
    again();
  }
  EXPECT_GT(detector.limit(), 5);
  EXPECT_LT(detector.limit(), 6);
}

// Of checkpoints that were written before.
TEST(SpikeDetector, TakesAStateWithoutTheNumberInARow) {
  SpikeDetector detector(4, 5), other(4, 5);
  for (int i = 0; i < 8; ++i) detector.observe(1 + 0.01 * (i % 2));
  Json old = detector.to_json();
  old.erase("in_a_row");
  other.from_json(old);
  EXPECT_EQ(other.to_json(), detector.to_json());
}

}  // namespace
}  // namespace skytrain::train
