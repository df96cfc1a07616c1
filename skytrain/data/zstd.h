// skytrain/data/zstd.h
//
// Zstandard (RFC 8878) for files whose unpacked size is known before. Thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

// Unpacks the file piece by piece, in little memory. Frames that follow each other count as one. Throws Error(kData,
// path): damaged, cut, unpacks to more or less than `size` bytes; no more than that are given to `sink`.
void unzstd(const FileSystem& fs, const std::string& path, uint64_t size,
            const std::function<void(std::span<const std::byte>)>& sink);

// One frame that states its size. The same bytes for the same content, level and version of the library.
std::string zstd(std::string_view content, int level);

}  // namespace skytrain::data
