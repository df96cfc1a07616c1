// tests/fuzz/round_trip.h
//
// What must hold for whatever bytes read_weights is given: an Error of kind kData, or arrays that are what they say and
// come back from a .pt of ours.

#pragma once
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/weights/read_bytes.h"

namespace skytrain::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

class StringFile final : public WritableFile {
 public:
  void append(std::span<const std::byte> bytes) override {
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void sync() override {}
  void close() override {}
  std::string content;
};

// The bytes in a block of their own size, so that the sanitizer sees each step beyond them.
inline weights::FileBytes file_of(std::string_view bytes) {
  auto* const block = static_cast<std::byte*>(std::malloc(bytes.size()));
  if (!bytes.empty()) std::memcpy(block, bytes.data(), bytes.size());
  weights::FileBytes file;
  file.owner =
      std::shared_ptr<const std::byte>(block, [](const std::byte* at) { std::free(const_cast<std::byte*>(at)); });
  file.bytes = {block, bytes.size()};
  return file;
}

// filled_with: what every byte of every array must be; -1: anything.
inline void read_and_write(std::string_view bytes, int filled_with = -1) {
  weights::Weights weights;
  try {
    weights = weights::read_bytes(file_of(bytes), "file");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kData && error.problem().find('\n') == std::string::npos);
    return;
  }
  size_t total = 0;
  for (const checkpoint::NamedArray& array : weights.arrays) {
    uint64_t size = checkpoint::dtype_size(array.dtype);
    for (const int64_t extent : array.shape) size *= static_cast<uint64_t>(extent);
    require(size == array.bytes.size());
    for (const std::byte byte : array.bytes.first(filled_with < 0 ? 0 : array.bytes.size())) {
      require(static_cast<int>(byte) == filled_with);
    }
    total += array.bytes.size();
  }
  if (total > (size_t{16} << 20)) return;  // one storage under many names
  StringFile file;
  try {
    weights::write_pt(file, weights.arrays);
  } catch (const Error& error) {
    // A safetensors file may name an array "" or give an empty one a shape that overflows; the writer says so.
    require(weights.format == weights::Format::kSafetensors);
    return;
  }
  const weights::Weights again = weights::read_bytes(file_of(file.content), "again");
  require(again.arrays.size() == weights.arrays.size());
  for (size_t i = 0; i < again.arrays.size(); ++i) {
    const checkpoint::NamedArray &one = weights.arrays[i], &two = again.arrays[i];
    require(one.dtype == two.dtype && one.shape == two.shape && one.bytes.size() == two.bytes.size());
    require(one.bytes.empty() || std::memcmp(one.bytes.data(), two.bytes.data(), one.bytes.size()) == 0);
  }
}

}  // namespace skytrain::fuzz
