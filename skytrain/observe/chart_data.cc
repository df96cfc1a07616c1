#include "skytrain/observe/chart_data.h"

#include <charconv>
#include <cmath>

namespace skytrain::observe {

namespace {

double round_to_six_digits(double value) {
  char buffer[40];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, 5);
  double rounded = value;
  std::from_chars(buffer, written.ptr, rounded);
  return rounded;
}

}  // namespace

Series downsample(const Series& series, size_t limit) {
  if (series.size() <= limit) return series;
  Series out;
  out.reserve(limit);
  out.push_back(series.front());
  // The inner points in limit - 2 buckets of equal size; edge(b) is the first point of bucket b.
  const double width = static_cast<double>(series.size() - 2) / static_cast<double>(limit - 2);
  const auto edge = [&](size_t bucket) { return 1 + static_cast<size_t>(static_cast<double>(bucket) * width); };
  for (size_t bucket = 0; bucket < limit - 2; ++bucket) {
    const size_t begin = edge(bucket);
    const size_t end = std::min(edge(bucket + 1), series.size() - 1);
    const size_t next_end = std::min(std::max(edge(bucket + 2), end + 1), series.size());
    Point mean;
    for (size_t i = end; i < next_end; ++i) {
      mean.x += series[i].x;
      mean.y += series[i].y;
    }
    mean.x /= static_cast<double>(next_end - end);
    mean.y /= static_cast<double>(next_end - end);
    const Point last = out.back();
    Point best = series[begin];
    double largest = -1;
    for (size_t i = begin; i < end; ++i) {
      const double area =
          std::fabs((last.x - mean.x) * (series[i].y - last.y) - (last.x - series[i].x) * (mean.y - last.y));
      if (area > largest) {
        largest = area;
        best = series[i];
      }
    }
    out.push_back(best);
  }
  out.push_back(series.back());
  return out;
}

Series smooth(const Series& series, double span) {
  const double keep = 1 - 2 / (span + 1);
  double mean = 0, weight = 0;
  Series out;
  out.reserve(series.size());
  for (const Point& point : series) {
    mean = keep * mean + (1 - keep) * point.y;
    weight = keep * weight + (1 - keep);
    out.push_back({point.x, mean / weight});
  }
  return out;
}

OrderedJson chart_json(const Series& series) {
  OrderedJson x = OrderedJson::array(), y = OrderedJson::array();
  for (const Point& point : series) {
    x.push_back(point.x);
    y.push_back(round_to_six_digits(point.y));
  }
  return {{"x", std::move(x)}, {"y", std::move(y)}};
}

}  // namespace skytrain::observe
