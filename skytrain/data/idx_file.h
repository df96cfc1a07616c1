// skytrain/data/idx_file.h
//
// One IDX file of unsigned bytes, plain or gzip (told apart by content, not by name):
// two zero bytes | type (0x08 = unsigned byte) | number of dimensions | each dimension as u32 big-endian | data.
//
// The reader trusts nothing: no memory is allocated for the header's numbers before they were checked against the
// file's size. Thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

struct IdxFile {
  std::vector<uint64_t> dimensions;  // > 0 each
  std::unique_ptr<uint8_t[]> block;  // header and data, as in the file
  size_t offset = 0;                 // of the data in block
  size_t size = 0;                   // of the data: the product of the dimensions
  std::span<const uint8_t> data() const { return {block.get() + offset, size}; }
};

inline constexpr int kIdxImageDimensions = 3;  // samples, rows, columns
inline constexpr int kIdxLabelDimensions = 1;

// dimensions: how many the file must have. Throws Error(kData) naming the file, or Error(kEnvironment) for disk trouble
// and lack of memory.
IdxFile read_idx(const FileSystem& fs, const std::string& path, int dimensions);

}  // namespace skytrain::data
