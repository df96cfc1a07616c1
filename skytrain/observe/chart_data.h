// skytrain/observe/chart_data.h
//
// Long series of measurements -> curves short enough for a page.

#pragma once
#include <cstddef>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::observe {

struct Point {
  double x = 0, y = 0;
};
using Series = std::vector<Point>;  // by rising x, all finite

constexpr size_t kMaxPoints = 1000;  // of a curve on a page

// At most `limit` of the points, the first and the last among them, chosen so that the curve keeps its look and its
// outliers: Largest-Triangle-Three-Buckets (Steinarsson 2013, "Downsampling Time Series for Visual Representation").
// REQUIRES: limit >= 3.
Series downsample(const Series& series, size_t limit = kMaxPoints);

// Exponential moving average over about `span` points, without the bias towards its start.
Series smooth(const Series& series, double span);

// {"x": […], "y": […]} with six significant digits.
OrderedJson chart_json(const Series& series);

}  // namespace skytrain::observe
