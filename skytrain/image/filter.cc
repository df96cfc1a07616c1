#include "skytrain/image/filter.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace skytrain::image {
namespace {

// Of 32 bits, 8 are a pixel's, one is the sign's, and two are for weights that sum to more than they add up to (some of
// a cubic are negative).
constexpr int kMaxPrecision = 20;

constexpr float kLargestWeight = 32700;  // of 16 bits, with room for what rounding moves

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

template <typename Function>
void sample(Function function, double center, double width, int64_t first, int64_t count, float* weights) {
  const double step = 1 / width;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double weight = function((static_cast<double>(first + i) - center + 0.5) * step);
    weights[i] = static_cast<float>(weight);
    total += weight;
  }
  if (total == 0) return;
  const auto norm = static_cast<float>(1 / total);
  for (int64_t i = 0; i < count; ++i) weights[i] *= norm;
}

int32_t nearest(float x) { return _mm_cvtss_si32(_mm_set_ss(x)); }

}  // namespace

void Taps16::set(const Axis& axis) {
  if (axis == axis_) return;
  axis_ = axis;
  blocks_set_ = false;
  const double scale = static_cast<double>(axis.from) / static_cast<double>(axis.to);
  const double width = std::max(scale, 1.0);
  const double support = width * (axis.filter == Filter::kBilinear ? 1 : 2);
  stride_ = std::min(static_cast<int64_t>(std::ceil(support)) * 2 + 1, axis.from);
  const auto count = static_cast<size_t>(axis.count), all = static_cast<size_t>(axis.count * stride_);
  first_.resize(count);
  used_.resize(count);
  exact_.resize(all);
  weights_.assign(all, 0);
  longest_ = 1;
  float largest = 0;
  // All outputs, also those that are not wanted: the precision, and so the pixels, should not depend on the window.
  std::vector<float>& unwanted = spare_;
  unwanted.resize(static_cast<size_t>(stride_));
  for (int64_t place = 0; place < axis.to; ++place) {
    const double center = (static_cast<double>(place) + 0.5) * scale;
    // Rounded, halves up: none is negative.
    const double low = std::max(center - support + 0.5, 0.0), high = center + support + 0.5;
    const auto first = static_cast<int64_t>(low);
    const int64_t end = std::min(static_cast<int64_t>(high), axis.from);
    const bool wanted = place >= axis.begin && place < axis.begin + axis.count;
    const int64_t i = axis.mirrored ? axis.begin + axis.count - 1 - place : place - axis.begin;
    float* const weights = wanted ? exact_.data() + i * stride_ : unwanted.data();
    if (axis.filter == Filter::kBilinear) {
      sample(triangle, center, width, first, end - first, weights);
    } else {
      sample(cubic, center, width, first, end - first, weights);
    }
    for (int64_t k = 0; k < end - first; ++k) largest = std::max(largest, std::abs(weights[k]));
    if (!wanted) continue;
    first_[static_cast<size_t>(i)] = static_cast<int32_t>(first);
    used_[static_cast<size_t>(i)] = static_cast<int32_t>(end - first);
    longest_ = std::max(longest_, end - first);
  }
  precision_ = 0;
  while (precision_ < kMaxPrecision && largest * static_cast<float>(2 << precision_) < kLargestWeight) ++precision_;
  const auto one = static_cast<float>(1 << precision_);
  begin_ = axis.from;
  end_ = 0;
  for (int64_t i = 0; i < axis.count; ++i) {
    const float* const exact = exact_.data() + i * stride_;
    int16_t* const weights = weights_.data() + i * stride_;
    const int64_t used = used_[static_cast<size_t>(i)], first = first_[static_cast<size_t>(i)];
    // What rounding adds to a weight is taken from the next: the sum is exact.
    int32_t sum = 0;
    int64_t top = 0;
    float carried = 0;
    for (int64_t k = 0; k < used; ++k) {
      const float wanted = exact[k] * one + carried;
      const int32_t weight = nearest(wanted);
      carried = wanted - static_cast<float>(weight);
      weights[k] = static_cast<int16_t>(weight);
      sum += weight;
      if (exact[k] > exact[top]) top = k;
    }
    weights[top] = static_cast<int16_t>(weights[top] + (1 << precision_) - sum);
    begin_ = std::min(begin_, first);
    end_ = std::max(end_, first + used);
  }
}

void Taps16::set_blocks() {
  if (blocks_set_) return;
  blocks_set_ = true;
  groups_ = (longest_ + kBlock - 1) / kBlock;
  const int64_t read = groups_ * kBlock, width = end_ - begin_;
  block_starts_.assign(static_cast<size_t>(blocks() * kBlock), 0);
  block_weights_.assign(static_cast<size_t>(blocks() * groups_ * kBlock * kBlock), 0);
  for (int64_t i = 0; i < axis_.count; ++i) {
    // Near the end of the line reading begins earlier, so that it does not go beyond.
    const int64_t start = std::max<int64_t>(std::min(first(i), width - read), 0), late = first(i) - start;
    block_starts_[static_cast<size_t>(i)] = static_cast<int32_t>(start);
    int16_t* const block = block_weights_.data() + i / kBlock * groups_ * kBlock * kBlock + i % kBlock * kBlock;
    const int16_t* const from = weights(i);
    for (int64_t k = 0; k < used(i); ++k) {
      const int64_t at = late + k;
      block[at / kBlock * kBlock * kBlock + at % kBlock] = from[k];
    }
  }
}

}  // namespace skytrain::image
