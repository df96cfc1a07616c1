// skytrain/weights/allocation_meter.h
//
// For tests: how much memory was taken at once. Linking allocation_meter_test.cc replaces operator new. One thread.

#pragma once
#include <cstddef>

namespace skytrain::weights {

class AllocationMeter {
 public:
  AllocationMeter();          // begins to measure
  size_t peak_bytes() const;  // most that was taken at once since, above what was taken before
};

}  // namespace skytrain::weights
