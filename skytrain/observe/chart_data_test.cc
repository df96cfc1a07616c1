#include "skytrain/observe/chart_data.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::observe {
namespace {

Series wave(size_t points) {
  Series series;
  for (size_t i = 0; i < points; ++i) series.push_back({static_cast<double>(i), std::sin(static_cast<double>(i) / 50)});
  return series;
}

TEST(Downsample, KeepsWhatIsShort) {
  for (const size_t points : {0, 1, 2, 3, 999, 1000}) EXPECT_EQ(downsample(wave(points)).size(), points);
}

TEST(Downsample, GivesExactlyTheLimitOfRisingOriginalPoints) {
  for (const size_t points : {4, 5, 10, 1001, 1002, 1999, 100000}) {
    for (const size_t limit : {3, 4, 7, 1000}) {
      const Series series = wave(points);
      const Series shorter = downsample(series, limit);
      ASSERT_EQ(shorter.size(), std::min(points, limit)) << points << " " << limit;
      EXPECT_EQ(shorter.front().x, 0);
      EXPECT_EQ(shorter.back().x, static_cast<double>(points - 1));
      for (size_t i = 0; i < shorter.size(); ++i) {
        EXPECT_EQ(shorter[i].y, series[static_cast<size_t>(shorter[i].x)].y);
        if (i > 0) {
          EXPECT_LT(shorter[i - 1].x, shorter[i].x);
        }
      }
    }
  }
}

// A loss spike of one step in fifty thousand is what one opens the chart for.
TEST(Downsample, KeepsASingleSpike) {
  Series series = wave(50000);
  series[31415].y = 40;
  const Series shorter = downsample(series);
  EXPECT_TRUE(std::any_of(shorter.begin(), shorter.end(), [](const Point& point) { return point.y == 40; }));
}

TEST(Smooth, LeavesAConstantAloneFromTheStart) {
  for (const Point& point : smooth({{1, 5}, {2, 5}, {3, 5}, {4, 5}}, 10)) EXPECT_DOUBLE_EQ(point.y, 5);
}

TEST(Smooth, LowersNoise) {
  Series noisy;
  for (int i = 0; i < 1000; ++i) noisy.push_back({static_cast<double>(i), i % 2 ? 1.0 : -1.0});
  EXPECT_LT(std::fabs(smooth(noisy, 50).back().y), 0.05);
}

TEST(ChartJson, RoundsToSixDigits) {
  EXPECT_EQ(chart_json({{1, 0.123456789}, {2, 1e-9}}).dump(), R"({"x":[1.0,2.0],"y":[0.123457,1e-09]})");
}

}  // namespace
}  // namespace skytrain::observe
