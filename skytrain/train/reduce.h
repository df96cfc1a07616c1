// skytrain/train/reduce.h
//
// Sums of gradients over replicas. Instruction sets are chosen at run time; all give the same bits, since elements are
// independent and summed in the order of replicas.

#pragma once
#include <cstdint>
#include <span>

namespace skytrain::train {

// out[k] += sum over `more` of more[j][k], for k < size. Returns true when every sum is finite.
bool add_and_check(float* out, std::span<const float* const> more, int64_t size);
bool add_and_check(double* out, std::span<const double* const> more, int64_t size);

bool all_finite(const float* values, int64_t size);
bool all_finite(const double* values, int64_t size);

// Sum of squares in double, in a fixed order.
double sum_of_squares(const float* values, int64_t size);
double sum_of_squares(const double* values, int64_t size);

}  // namespace skytrain::train
