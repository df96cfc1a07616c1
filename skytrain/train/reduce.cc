#include "skytrain/train/reduce.h"

namespace skytrain::train {
namespace {

constexpr int kLanes = 32;

// x - x is 0 for a finite x and NaN otherwise; kLanes independent sums, so that the compiler can keep them in vectors.
template <class T>
[[gnu::always_inline]] inline bool add_and_check_impl(T* out, std::span<const T* const> more, int64_t size) {
  T bad[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= size; k += kLanes) {
    T sum[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) sum[lane] = out[k + lane];
    for (const T* other : more)
      for (int lane = 0; lane < kLanes; ++lane) sum[lane] += other[k + lane];
    for (int lane = 0; lane < kLanes; ++lane) {
      out[k + lane] = sum[lane];
      bad[lane] += sum[lane] - sum[lane];
    }
  }
  for (; k < size; ++k) {
    for (const T* other : more) out[k] += other[k];
    bad[0] += out[k] - out[k];
  }
  T total = 0;
  for (T lane : bad) total += lane;
  return total == 0;
}

template <class T>
[[gnu::always_inline]] inline bool all_finite_impl(const T* values, int64_t size) {
  T bad[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= size; k += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) bad[lane] += values[k + lane] - values[k + lane];
  for (; k < size; ++k) bad[0] += values[k] - values[k];
  T total = 0;
  for (T lane : bad) total += lane;
  return total == 0;
}

template <class T>
[[gnu::always_inline]] inline double sum_of_squares_impl(const T* values, int64_t size) {
  double sums[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= size; k += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += double(values[k + lane]) * double(values[k + lane]);
  for (; k < size; ++k) sums[0] += double(values[k]) * double(values[k]);
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
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

}  // namespace skytrain::train
