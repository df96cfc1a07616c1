#include "skytrain/recipe/duration.h"

#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/recipe/scalar.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

TEST(Duration, PrintsWhatReadsBackAsTheSame) {
  const std::pair<Duration, const char*> cases[] = {
      {{500, Unit::kSteps}, "500 steps"},
      {{1, Unit::kSteps}, "1 step"},
      {{0, Unit::kSteps}, "0 steps"},
      {{600000, Unit::kSteps}, "600000 steps"},
      {{0.1, Unit::kEpochs}, "0.1 epochs"},
      {{1, Unit::kEpochs}, "1 epoch"},
      {{5, Unit::kPercent}, "5%"},
      {{600, Unit::kSeconds}, "600 s"},
      {{60000, Unit::kSamples}, "60000 samples"},
      {{1e17, Unit::kSamples}, "1e+17 samples"},
  };
  for (const auto& [duration, text] : cases) {
    EXPECT_EQ(to_string(duration), text);
    Duration back;
    EXPECT_FALSE(read_duration(text, {}, &back)) << text;
    EXPECT_EQ(back, duration);
  }
}

TEST(Duration, IsCountedInSamples) {
  const uint64_t batch = 64, epoch = 60000, total = 120000;
  EXPECT_EQ(to_samples({10, Unit::kSteps}, batch, epoch, total), 640u);
  EXPECT_EQ(to_samples({10, Unit::kSamples}, batch, epoch, total), 10u);
  EXPECT_EQ(to_samples({2, Unit::kEpochs}, batch, epoch, total), 120000u);
  EXPECT_EQ(to_samples({0.5, Unit::kEpochs}, batch, epoch, total), 30000u);
  EXPECT_EQ(to_samples({5, Unit::kPercent}, batch, epoch, total), 6000u);
  EXPECT_EQ(to_samples({100, Unit::kPercent}, batch, epoch, total), total);
  EXPECT_EQ(to_samples({0, Unit::kSteps}, batch, epoch, total), 0u);
  EXPECT_EQ(to_samples({1.0 / 3, Unit::kEpochs}, 1, 10, 10), 3u) << "to the nearest";
  EXPECT_EQ(to_samples({1e300, Unit::kEpochs}, batch, epoch, total), uint64_t{1} << 63) << "never, without overflow";
}

// `every: 469 steps` of MNIST in batches of 128 is an epoch, whose last step has 96 samples, and not 60032 samples.
TEST(Duration, StepsAreThoseOfEpochsWithAShortLastOne) {
  const auto samples = [](double steps, uint64_t batch) {
    return to_samples({steps, Unit::kSteps}, batch, /*samples_per_epoch=*/60000, /*total_samples=*/600000);
  };
  EXPECT_EQ(samples(468, 128), 468u * 128);
  EXPECT_EQ(samples(469, 128), 60000u);
  EXPECT_EQ(samples(470, 128), 60128u);
  EXPECT_EQ(samples(4690, 128), 600000u);
  EXPECT_EQ(samples(3, 100000), 180000u) << "a batch larger than the data is the data";
  EXPECT_EQ(samples(1e300, 128), uint64_t{1} << 63) << "never, without overflow";
}

TEST(Duration, OfTimeHasNoSamples) { EXPECT_THROW(to_samples({1, Unit::kSeconds}, 1, 1, 1), Error); }

}  // namespace
}  // namespace skytrain::recipe
