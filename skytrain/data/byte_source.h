// skytrain/data/byte_source.h
//
// Bytes at any offset of a file, for readers of formats whose headers lie between the data: what is read is a window of
// the file, which grows while it is read in order and shrinks to a page after a jump. Not thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // REQUIRES offset + count <= size(). Valid until the next call.
  virtual std::span<const uint8_t> bytes(uint64_t offset, size_t count) = 0;
};

// `begin`: offset of the first byte of `content` in the file that it was taken from; size() is the end of that piece.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> content, uint64_t begin = 0) : content_(content), begin_(begin) {}
  uint64_t size() const override { return begin_ + content_.size(); }
  std::span<const uint8_t> bytes(uint64_t offset, size_t count) override {
    return content_.subspan(static_cast<size_t>(offset - begin_), count);
  }

 private:
  std::span<const uint8_t> content_;
  uint64_t begin_;
};

class FileSource final : public ByteSource {
 public:
  // read(offset, out) fills `out` with the bytes from `offset`.
  using Read = std::function<void(uint64_t offset, std::span<std::byte> out)>;
  FileSource(Read read, uint64_t size) : read_(std::move(read)), size_(size) {}
  // size: of the file, in bytes. Reading throws what FileSystem::read_range() throws.
  FileSource(const FileSystem& fs, std::string path, uint64_t size)
      : FileSource([&fs, path = std::move(path)](uint64_t offset,
                                                 std::span<std::byte> out) { fs.read_range(path, offset, out); },
                   size) {}
  uint64_t size() const override { return size_; }
  std::span<const uint8_t> bytes(uint64_t offset, size_t count) override;

 private:
  const Read read_;
  const uint64_t size_;
  std::vector<uint8_t> window_;
  uint64_t begin_ = 0;  // of the window in the file
  size_t ahead_ = 0;    // bytes that the window had when it was read
};

}  // namespace skytrain::data
