// skytrain/base/scratch_file.h
//
// Disk space without a name, for what is too large for memory: it is gone when the object is, or the process, however
// it ends. Thread-safe for different ranges.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/process.h"

namespace skytrain {

class ScratchFile {
 public:
  // In the first of `folders` (of those not "") where a file can be made and `bytes` are free. Throws
  // Error(kEnvironment) that names the last of them when there is none.
  ScratchFile(const std::vector<std::string>& folders, uint64_t bytes);

  const std::string& folder() const { return folder_; }
  // Both throw Error(kEnvironment, folder()). REQUIRES of read() that the range has been written.
  void write(uint64_t offset, std::span<const std::byte> bytes);
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string folder_;
  Fd fd_;
};

}  // namespace skytrain
