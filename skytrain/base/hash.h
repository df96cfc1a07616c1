// skytrain/base/hash.h
//
// XXH3-128, the integrity hash of checkpoints, data fingerprints and caches. It finds accidents (bit flips, truncation,
// swapped files), not forgery: it is not a cryptographic hash.

#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace skytrain {

// Canonical (big-endian) form, 32 lower-case hex digits, as `xxhsum -H2` prints it.
std::string xxh128_hex(std::span<const std::byte> bytes);
std::string xxh128_hex(std::string_view text);

class Xxh128 {
 public:
  Xxh128();
  ~Xxh128();
  Xxh128(const Xxh128&) = delete;
  Xxh128& operator=(const Xxh128&) = delete;
  void update(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skytrain
