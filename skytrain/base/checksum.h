// skytrain/base/checksum.h
//
// Checksums by the names that Python's xxhash gives them, for files of others that carry them. Not thread-safe.

#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace skytrain {

class Checksum {
 public:
  // "xxh32", "xxh64", "xxh3_64", "xxh3_128" or "xxh128", with seed 0; nullptr: not known here ("sha1", "md5", …).
  static std::unique_ptr<Checksum> make(std::string_view kind);
  virtual ~Checksum() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  virtual std::string hex() const = 0;  // lower case, big-endian, as hexdigest() gives it
};

}  // namespace skytrain
