// skytrain/data/mix.h
//
// The keyed randomness of the data folder: stateless 64-bit mixing, so that any sample's random numbers can be had at
// any time, by anyone. Results are part of what a resumed run must reproduce: never change them.

#pragma once
#include <cstdint>

namespace skytrain::data {

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

// What a key is for. Two uses never share a stream, even with the same seed and numbers.
enum class Stream : uint64_t {
  kOrder = 1,
  kCrop = 2,
  kSyntheticClass = 3,
  kSyntheticTrain = 4,
  kSyntheticEval = 5,
  kFlip = 6,
  kDropout = 7,
  kResizedCrop = 8,
  kMixing = 20,
  kMixingKind = 21,
};

// A key of (stream, seed, a, b). Zeros are ordinary values: (0, 0, 0) gives a key as good as any.
constexpr uint64_t make_key(Stream stream, uint64_t seed, uint64_t a, uint64_t b = 0) {
  uint64_t key = mix64(seed + kGoldenGamma * static_cast<uint64_t>(stream));
  key = mix64((key ^ a) + kGoldenGamma);
  return mix64((key ^ b) + kGoldenGamma);
}

// The n-th 64 random bits under a key.
constexpr uint64_t random_bits(uint64_t key, uint64_t n) { return mix64(key + kGoldenGamma * (n + 1)); }

// Maps 64 random bits to [0, 1), to a multiple of 2^-53.
constexpr double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Maps 32 random bits to [0, bound) by multiplication (Lemire); the bias is below bound / 2^32. bound <= 2^32.
constexpr uint64_t below(uint32_t bits, uint64_t bound) { return (bits * bound) >> 32; }

}  // namespace skytrain::data
