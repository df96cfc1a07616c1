// skytrain/data/fingerprint.h
//
// The identity of a data set's content: equal for equal samples in equal order, whatever files they came from.

#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace skytrain::data {

// XXH3-128 over the numbers samples, channels, height and width (u64 little-endian each), all pixels (uint8, NCHW) and
// all labels (i64 little-endian). Recorded with runs: never change it.
std::string fingerprint(uint64_t samples, int64_t channels, int64_t height, int64_t width,
                        std::span<const uint8_t> pixels, std::span<const int32_t> labels);

}  // namespace skytrain::data
