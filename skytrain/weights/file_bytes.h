// skytrain/weights/file_bytes.h
//
// A file in memory, read once. Not mapped: a mapped file that somebody cuts short kills the reader with SIGBUS, and one
// that somebody rewrites changes after it was checked.

#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::weights {

struct FileBytes {
  std::shared_ptr<const std::byte> owner;
  std::span<const std::byte> bytes;  // begins at a multiple of 64
};

// Throws Error(kData) when there is no such file or it is not a plain one, Error(kEnvironment) when it can't be read or
// is larger than the memory.
FileBytes read_file_bytes(const FileSystem& fs, const std::string& path);

}  // namespace skytrain::weights
