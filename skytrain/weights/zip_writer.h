// skytrain/weights/zip_writer.h
//
// Writes a zip archive of stored members as a stream, each member's content at a multiple of 64 bytes, as torch.save
// does, so that a reader may map the file. Sizes and CRCs stand before the content; zip64 fields only where they are
// needed. Errors are those of the file.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "skytrain/base/file_system.h"

namespace skytrain::weights {

class ZipWriter {
 public:
  struct Options {
    // From where on sizes, places and counts go into zip64 fields. Less than the format's own bounds only in tests.
    uint64_t zip64_from = 0xFFFFFFFF;
    uint64_t zip64_members_from = 0xFFFF;
  };
  explicit ZipWriter(WritableFile& out) : ZipWriter(out, Options{}) {}
  ZipWriter(WritableFile& out, Options options) : out_(out), options_(options) {}

  // REQUIRES: name is UTF-8, new, and shorter than 64 KiB.
  void add(std::string_view name, std::span<const std::byte> content);
  void add(std::string_view name, std::string_view content);
  // Writes the directory; the archive is complete. Returns its size.
  uint64_t finish();

 private:
  void append(std::string_view text);

  WritableFile& out_;
  const Options options_;
  uint64_t written_ = 0, count_ = 0;
  std::string directory_;
};

}  // namespace skytrain::weights
