// skytrain/data/gzip.h
//
// Gzip for files whose decompressed size is known before they are decompressed: the caller peeks at the format's own
// header (or has the content measured), decides how much memory it deserves, and gets exactly that much or an error
// that says why not. Members that follow each other (as bgzip and pigz -i write them) count as one stream. Thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace skytrain::data {

// Deflate cannot expand further than this (a match of 258 bytes takes at least two bits).
inline constexpr uint64_t kDeflateMaxRatio = 1032;

bool is_gzip(std::span<const uint8_t> head);

// The first `count` decompressed bytes, or as many as `compressed` (a whole file or its beginning) gives before it ends
// or turns out to be damaged.
std::vector<uint8_t> gunzip_head(std::span<const uint8_t> compressed, size_t count);

// Decompresses the whole file `compressed` into `out`, which it must fill exactly. Throws Error(kData, file, …):
// truncated, CRC error, damaged, trailing garbage, more or less than out.size() bytes.
void gunzip_exactly(std::span<const uint8_t> compressed, std::span<uint8_t> out, const std::string& file);

// How many bytes the whole file `compressed` unpacks to, for formats whose header doesn't say. Unpacks it, slowly,
// without keeping anything. Throws the errors of gunzip_exactly(), and Error(kData) when it is more than `limit`.
uint64_t gunzip_size(std::span<const uint8_t> compressed, uint64_t limit, const std::string& file);

// Why gunzip_exactly() would refuse the file, in one clause. Slow; for the error path.
std::string explain_bad_gzip(std::span<const uint8_t> compressed, uint64_t expected_size);

}  // namespace skytrain::data
