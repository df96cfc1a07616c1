// skytrain/base/mix.h
//
// Keyed randomness: stateless 64-bit mixing, so that any random number can be had at any time, by anyone. Results are
// part of what a resumed run must reproduce: never change them.

#pragma once
#include <cstdint>

namespace skytrain {

// SplitMix64's finaliser (Stafford's "Mix13"): a bijection in which each input bit changes each output bit with
// probability close to 1/2.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

// The n-th 64 random bits under a key.
constexpr uint64_t random_bits(uint64_t key, uint64_t n) { return mix64(key + kGoldenGamma * (n + 1)); }

// Maps 64 random bits to [0, 1), to a multiple of 2^-53.
constexpr double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Maps 32 random bits to [0, bound) by multiplication (Lemire); the bias is below bound / 2^32. bound <= 2^32.
constexpr uint64_t below(uint32_t bits, uint64_t bound) { return (bits * bound) >> 32; }

// The random numbers under one key, one after the other. Not thread-safe.
class KeyedRandom {
 public:
  explicit constexpr KeyedRandom(uint64_t key) : key_(key) {}
  constexpr uint64_t bits() { return random_bits(key_, drawn_++); }
  constexpr double uniform() { return unit_interval(bits()); }  // [0, 1)
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }
  constexpr uint64_t integer(uint64_t bound) {
    return below(static_cast<uint32_t>(bits() >> 32), bound);
  }  // [0, bound)
  constexpr bool chance(double probability) { return uniform() < probability; }

 private:
  uint64_t key_, drawn_ = 0;
};

}  // namespace skytrain
