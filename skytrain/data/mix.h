// skytrain/data/mix.h
//
// The keys of the data folder's randomness, so that any sample's random numbers can be had at any time, by anyone.
// Results are part of what a resumed run must reproduce: never change them.

#pragma once
#include <cstdint>

#include "skytrain/base/mix.h"

namespace skytrain::data {

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
  kColor = 9,
  kAugment = 10,
  kErasing = 11,
  kBuckets = 12,      // the order of their steps
  kBucketOrder = 13,  // the order of the samples of one
  kMixing = 20,
  kMixingKind = 21,
};

// A key of (stream, seed, a, b). Zeros are ordinary values: (0, 0, 0) gives a key as good as any.
constexpr uint64_t make_key(Stream stream, uint64_t seed, uint64_t a, uint64_t b = 0) {
  uint64_t key = mix64(seed + kGoldenGamma * static_cast<uint64_t>(stream));
  key = mix64((key ^ a) + kGoldenGamma);
  return mix64((key ^ b) + kGoldenGamma);
}

}  // namespace skytrain::data
