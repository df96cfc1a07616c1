// skytrain/base/readable_file.h
//
// An open file that is read at any offset, by any number of threads at once.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace skytrain {

class FileSystem;

class ReadableFile {
 public:
  // What read_direct() wants its offset, its memory and its size to be multiples of.
  static constexpr size_t kDirectBlock = 4096;

  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;  // bytes, when it was opened
  // Reads exactly out.size() bytes from `offset`. Throws Error(kData) on a short file, Error(kEnvironment) on failure.
  virtual void read(uint64_t offset, std::span<std::byte> out) const = 0;
  // The same past the page cache where the file system can do that, for large content that is read once. Gives how many
  // bytes were read: fewer than out.size() at the end of the file only.
  virtual size_t read_direct(uint64_t offset, std::span<std::byte> out) const = 0;
  // Whether read() of these bytes does not have to wait for a disk. What can't be told is not.
  virtual bool is_in_memory(uint64_t offset, uint64_t bytes) const = 0;
  // The whole file, mapped; valid as long as this object. A disk that fails or somebody who shortens the file ends the
  // process when the bytes are used (SIGBUS): read() them first where that matters.
  virtual std::span<const std::byte> map() const = 0;
};

// Of the operating system. Throws what FileSystem::open_read() throws.
std::unique_ptr<ReadableFile> open_real_file(const std::string& path);

}  // namespace skytrain
