// skytrain/train/loops.h
//
// Loops over flat arrays that LibTorch has no single operator for. Instruction sets are chosen at run time; sums are
// taken in a fixed order of lanes, so equal calls give equal bits on one machine.

#pragma once
#include <cstdint>
#include <span>

namespace skytrain::train {

// out[k] += sum over `more` of more[j][k], for k < size, in the order of `more`. Returns true when every sum is finite.
bool add_and_check(float* out, std::span<const float* const> more, int64_t size);
bool add_and_check(double* out, std::span<const double* const> more, int64_t size);

bool all_finite(const float* values, int64_t size);
bool all_finite(const double* values, int64_t size);

// Sum of squares in double.
double sum_of_squares(const float* values, int64_t size);
double sum_of_squares(const double* values, int64_t size);

// values[k] = clamp(values[k] * scale, -limit, limit).
void scale_and_clamp(float* values, int64_t size, double scale, double limit);
void scale_and_clamp(double* values, int64_t size, double scale, double limit);

// See lamb.h. first_scale, second_scale: of the moments, 1 / (1 - beta^t).
struct LambFactors {
  double beta1, beta2, first_scale, second_scale, eps, weight_decay;
};
struct LambNorms {
  double parameter = 0, update = 0;  // sums of squares
};
LambNorms lamb_update(const float* parameter, const float* gradient, float* first, float* second, float* update,
                      int64_t size, const LambFactors& factors);
LambNorms lamb_update(const double* parameter, const double* gradient, double* first, double* second, double* update,
                      int64_t size, const LambFactors& factors);

}  // namespace skytrain::train
