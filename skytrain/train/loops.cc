#include "skytrain/train/loops.h"

#include <algorithm>
#include <cmath>

namespace skytrain::train {
namespace {

// Independent sums, so that the compiler can keep them in vectors.
constexpr int kLanes = 32;

template <class Sum>
struct Lanes {
  Sum sums[kLanes] = {};
  Sum total() const {
    Sum total = 0;
    for (const Sum sum : sums) total += sum;
    return total;
  }
};

// element(k, lane) for every k < size; lane: k's place among kLanes neighbours.
template <class F>
[[gnu::always_inline]] inline void for_lanes(int64_t size, const F& element) {
  int64_t k = 0;
  for (; k + kLanes <= size; k += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) element(k + lane, lane);
  for (int lane = 0; k < size; ++k, ++lane) element(k, lane);
}

template <class T>
[[gnu::always_inline]] inline bool all_finite_impl(const T* values, int64_t size) {
  Lanes<T> bad;  // x - x is 0 for a finite x and NaN otherwise
  for_lanes(size, [&](int64_t k, int lane) { bad.sums[lane] += values[k] - values[k]; });
  return bad.total() == 0;
}

// Piece by piece, so that a piece of `out` stays in the first-level cache while the others are added to it.
template <class T>
[[gnu::always_inline]] inline bool add_and_check_impl(T* out, std::span<const T* const> more, int64_t size) {
  constexpr int64_t kPiece = 2048;
  bool finite = true;
  for (int64_t begin = 0; begin < size; begin += kPiece) {
    const int64_t count = std::min(kPiece, size - begin);
    T* const __restrict sum = out + begin;
    for (const T* const all : more) {
      const T* const __restrict other = all + begin;
      for_lanes(count, [&](int64_t k, int) { sum[k] += other[k]; });
    }
    finite = all_finite_impl(sum, count) && finite;
  }
  return finite;
}

template <class T>
[[gnu::always_inline]] inline double sum_of_squares_impl(const T* values, int64_t size) {
  Lanes<double> sums;
  for_lanes(size, [&](int64_t k, int lane) { sums.sums[lane] += double(values[k]) * double(values[k]); });
  return sums.total();
}

template <class T>
[[gnu::always_inline]] inline void scale_and_clamp_impl(T* values, int64_t size, T scale, T limit) {
  for_lanes(size, [&](int64_t k, int) { values[k] = std::min(limit, std::max(-limit, values[k] * scale)); });
}

template <class T>
[[gnu::always_inline]] inline LambNorms lamb_update_impl(const T* __restrict parameter, const T* __restrict gradient,
                                                         T* __restrict first, T* __restrict second,
                                                         T* __restrict update, int64_t size,
                                                         const LambFactors& factors) {
  const T beta1 = T(factors.beta1), beta2 = T(factors.beta2), rest1 = T(1 - factors.beta1),
          rest2 = T(1 - factors.beta2), first_scale = T(factors.first_scale), second_scale = T(factors.second_scale),
          eps = T(factors.eps), weight_decay = T(factors.weight_decay);
  Lanes<double> parameters, updates;
  for_lanes(size, [&](int64_t k, int lane) {
    const T m = beta1 * first[k] + rest1 * gradient[k];
    const T v = beta2 * second[k] + rest2 * gradient[k] * gradient[k];
    const T u = m * first_scale / (std::sqrt(v * second_scale) + eps) + weight_decay * parameter[k];
    first[k] = m;
    second[k] = v;
    update[k] = u;
    parameters.sums[lane] += double(parameter[k]) * double(parameter[k]);
    updates.sums[lane] += double(u) * double(u);
  });
  return {parameters.total(), updates.total()};
}

}  // namespace

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SKYTRAIN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SKYTRAIN_CLONES
#endif

SKYTRAIN_CLONES bool add_and_check(float* out, std::span<const float* const> more, int64_t size) {
  return add_and_check_impl(out, more, size);
}
SKYTRAIN_CLONES bool add_and_check(double* out, std::span<const double* const> more, int64_t size) {
  return add_and_check_impl(out, more, size);
}
SKYTRAIN_CLONES bool all_finite(const float* values, int64_t size) { return all_finite_impl(values, size); }
SKYTRAIN_CLONES bool all_finite(const double* values, int64_t size) { return all_finite_impl(values, size); }
SKYTRAIN_CLONES double sum_of_squares(const float* values, int64_t size) { return sum_of_squares_impl(values, size); }
SKYTRAIN_CLONES double sum_of_squares(const double* values, int64_t size) { return sum_of_squares_impl(values, size); }
SKYTRAIN_CLONES void scale_and_clamp(float* values, int64_t size, double scale, double limit) {
  scale_and_clamp_impl(values, size, float(scale), float(limit));
}
SKYTRAIN_CLONES void scale_and_clamp(double* values, int64_t size, double scale, double limit) {
  scale_and_clamp_impl(values, size, scale, limit);
}
SKYTRAIN_CLONES LambNorms lamb_update(const float* parameter, const float* gradient, float* first, float* second,
                                      float* update, int64_t size, const LambFactors& factors) {
  return lamb_update_impl(parameter, gradient, first, second, update, size, factors);
}
SKYTRAIN_CLONES LambNorms lamb_update(const double* parameter, const double* gradient, double* first, double* second,
                                      double* update, int64_t size, const LambFactors& factors) {
  return lamb_update_impl(parameter, gradient, first, second, update, size, factors);
}

}  // namespace skytrain::train
