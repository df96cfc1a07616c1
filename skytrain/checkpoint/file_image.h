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
  // In a file in memory (memory_snapshot.h), which stays the caller's.
  explicit FileImage(int fd) : fd_(fd) {}
  ~FileImage();
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;

  // Makes room for these arrays, of which only names, dtypes and shapes count, and writes the header. Data begin at a
  // multiple of 4096. Throws Error(kEnvironment) when there is no memory.
  void lay_out(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata);

  // Makes room for them as lay_out() does, and changes nothing.
  void reserve_for(std::span<const NamedArray> arrays, const std::map<std::string, std::string>& metadata);

  // What a former process left in the file; empty when that is shorter. Holds until the next lay_out().
  std::span<const std::byte> existing(uint64_t bytes);

  // Gets the pages of all this from the kernel now, rather than while it is filled.
  void touch();

  // Where the bytes of arrays[index] go.
  std::span<std::byte> array(size_t index) const;
  std::span<const std::byte> file() const { return {memory_, static_cast<size_t>(layout_.file_bytes)}; }

 private:
  void reserve(size_t bytes);

  SafetensorsLayout layout_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace skytrain::checkpoint
