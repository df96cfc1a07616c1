// skytrain/checkpoint/file_image.h
//
// The content of a safetensors file in memory, at page boundaries, so that it can be written past the page cache. Used
// again for each checkpoint: the memory is mapped once.

#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "skytrain/checkpoint/safetensors.h"

namespace skytrain::checkpoint {

class FileImage {
 public:
  FileImage() = default;
  ~FileImage();
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;

  // Makes room for these arrays, of which only names, dtypes and shapes count, and writes the header. Data begin at a
  // multiple of 4096. Throws Error(kEnvironment) when there is no memory.
  void lay_out(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata);

  // Gets the pages of all this from the kernel now, rather than while it is filled.
  void touch();

  // Where the bytes of arrays[index] go.
  std::span<std::byte> array(size_t index) const;
  std::span<const std::byte> file() const { return {memory_, static_cast<size_t>(layout_.file_bytes)}; }

 private:
  void reserve(size_t bytes);

  SafetensorsLayout layout_;
  std::byte* memory_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace skytrain::checkpoint
