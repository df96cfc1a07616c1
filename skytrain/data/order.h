// skytrain/data/order.h
//
// The order in which samples are seen: a pure function of (size, seed, epoch).
// No state, no memory proportional to the data set, so any process can ask for any position.

#pragma once
#include <cstdint>

namespace skytrain::data {

// A permutation of [0, size) chosen by (seed, epoch).
//
// A balanced Feistel network over the next even power of two, cycle-walked back into range (Black & Rogaway 2002,
// "Ciphers with Arbitrary Finite Domains", method 2). O(1) memory; at most 4 expected walks per call. Thread-safe.
class Order {
 public:
  // size > 0. The same (size, seed, epoch) gives the same order on every platform, forever: a change of this function
  // is a change of the checkpoint format.
  Order(uint64_t size, uint64_t seed, uint64_t epoch);

  // The sample at `position`. REQUIRES: position < size().
  uint64_t operator[](uint64_t position) const;
  uint64_t size() const { return size_; }

 private:
  static constexpr int kRounds = 6;
  uint64_t size_;
  uint64_t keys_[kRounds];
  uint32_t half_bits_;
};

}  // namespace skytrain::data
