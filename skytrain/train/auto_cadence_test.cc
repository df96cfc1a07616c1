#include "skytrain/train/auto_cadence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::train {
namespace {

TEST(CheckpointInterval, IsThatOfLeastLoss) {
  // The expected share of time lost, by Daly's model with exponential failures: saves of `cost`, and after a failure
  // the interval that was under way is done again.
  const double cost = 5, mtbf = 3600;
  const auto lost = [&](double interval) {
    return mtbf * (std::exp((interval + cost) / mtbf) - 1) / interval;  // time per unit of work
  };
  const double found = checkpoint_interval(cost, mtbf);
  for (const double other : {found * 0.8, found * 0.9, found * 1.1, found * 1.25}) EXPECT_LT(lost(found), lost(other));
  EXPECT_NEAR(found, std::sqrt(2 * cost * mtbf), 6);
  EXPECT_EQ(checkpoint_interval(10000, 3600), 3600);  // saving takes longer than a machine lives
}

TEST(AutoCadence, LearnsWhatASaveCosts) {
  AutoCadence cadence(/*mtbf=*/10000, /*expected_cost=*/2);
  EXPECT_DOUBLE_EQ(cadence.interval(), checkpoint_interval(2, 10000));
  for (int i = 0; i < 50; ++i) cadence.step(0.4, 0, false);
  for (int i = 0; i < 5; ++i) cadence.step(0.5, i == 0 ? 0.02 : 0, true);  // 0.1 each, and of the first 0.02 by waiting
  cadence.saved(/*seconds_of_save=*/3);
  EXPECT_NEAR(cadence.interval(), checkpoint_interval(0.5, 10000), 1e-6);
  // A save that costs nothing at all still has its time.
  for (int n = 0; n < 20; ++n) {
    cadence.step(0.4, 0, true);
    cadence.saved(30);
  }
  EXPECT_EQ(cadence.interval(), 90);
}

}  // namespace
}  // namespace skytrain::train
