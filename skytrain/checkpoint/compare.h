// skytrain/checkpoint/compare.h
//
// How two checkpoints differ, tensor by tensor.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::checkpoint {

struct TensorDifference {
  enum class Kind { kOnlyFirst, kOnlySecond, kShape, kValues } kind = Kind::kValues;
  std::string name, detail;  // detail: of kShape, both: "F32 [3] and F32 [4]"
  uint64_t elements = 0;     // of kValues: how many differ in any bit
  double most = 0;           // of kValues: the largest difference; NaN where one value is NaN
};

struct Comparison {
  uint64_t tensors = 0;                       // in either
  std::vector<TensorDifference> differences;  // by name
  bool state_equal = true;                    // the manifests' state, clocks left out
};

// Reads both into memory. Throws Error(kData) when one is damaged, Error(kEnvironment) for disk trouble.
Comparison compare(const FileSystem& fs, const std::string& first, const std::string& second);

}  // namespace skytrain::checkpoint
