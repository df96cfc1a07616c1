// skytrain/checkpoint/safetensors.h
//
// The safetensors file format (https://huggingface.co/docs/safetensors, v0.3+): u64 little-endian header length, JSON
// header, tensor bytes without holes. Knows bytes, dtypes and shapes; no tensors.
//
// The reader trusts nothing: every offset, size product and key is checked before a byte is used, and no allocation
// follows a number of the file before that number was checked against the file's size.

#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::checkpoint {

enum class Dtype { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };
size_t dtype_size(Dtype dtype);
std::string_view dtype_name(Dtype dtype);  // "F32", as in the file

// A named array to be written. The bytes are borrowed.
struct NamedArray {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;        // empty: a scalar
  std::span<const std::byte> bytes;  // little-endian, row-major; product(shape) * dtype_size
};

struct ArrayInfo {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // byte range in the file (absolute)
};

struct SafetensorsHeader {
  std::map<std::string, ArrayInfo> arrays;
  std::map<std::string, std::string> metadata;  // "__metadata__"
  uint64_t file_bytes = 0;
};

// Where the parts of a file lie.
struct SafetensorsLayout {
  std::string head;                     // length and header; the data follow
  std::vector<size_t> order;            // of the arrays: those of the largest elements first, then by name
  std::vector<uint64_t> begins, sizes;  // of arrays[i] in the file, in bytes
  uint64_t file_bytes = 0;
};
// Of the arrays, names, dtypes and shapes count. Data begin at a multiple of `alignment`. Throws Error(kInternal) for
// names that are not UTF-8 or come twice.
SafetensorsLayout lay_out_safetensors(std::span<const NamedArray> arrays,
                                      const std::map<std::string, std::string>& metadata, uint64_t alignment);

// Streams the file to `out`; arrays are written in order of (dtype size descending, name) as the reference does; the
// data section starts at a multiple of 64. Returns bytes written.
uint64_t write_safetensors(WritableFile& out, std::span<const NamedArray> arrays,
                           const std::map<std::string, std::string>& metadata);

// Parses and checks the header of a file of `file_bytes` bytes whose first bytes are `head` (at least the header, or
// the whole file). Throws Error(kData) naming file, tensor and cause.
SafetensorsHeader parse_safetensors_header(std::string_view head, uint64_t file_bytes, const std::string& file);
SafetensorsHeader read_safetensors_header(const FileSystem& fs, const std::string& file);
// The bytes before the data, length and header, of a file that was opened; `path` is for errors. Throws Error(kData).
std::string read_safetensors_head(const ReadableFile& file, const std::string& path);

// Throws Error(kData) naming file and tensor when it is not there.
const ArrayInfo& array_of(const SafetensorsHeader& header, const std::string& name, const std::string& file);

}  // namespace skytrain::checkpoint
