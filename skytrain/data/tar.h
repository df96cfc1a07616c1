// skytrain/data/tar.h
//
// Members of a tar archive: POSIX ustar and pax (IEEE Std 1003.1, "pax interchange format"), GNU tar's long names and
// base-256 sizes ("Basic Tar Format" of its manual), and the format before ustar. Nothing is unpacked to disk, so names
// may be anything. Thread-safe for different sources.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skytrain/data/byte_source.h"

namespace skytrain::data {

inline constexpr uint64_t kTarBlock = 512;

struct TarMember {
  enum class Type { kFile, kLink, kOther } type = Type::kFile;  // kOther: folder, device, …
  std::string name;                                             // as written, any bytes but NUL
  uint64_t start = 0;  // offset of its first header; headers of its long name or of pax come first
  uint64_t data = 0;   // offset of its content
  uint64_t size = 0;   // bytes of its content; 0 unless it is a file
  uint64_t next = 0;   // offset of what follows
};

// The member whose headers begin at `offset`, or nullopt at the archive's end mark. When `whole`, its data must lie
// within the source too. Throws Error(kData, path, …) with the offset: cut, damaged, no tar at all, a sparse file.
std::optional<TarMember> read_tar_member(ByteSource& tar, uint64_t offset, const std::string& path, bool whole = true);

// Throws Error(kData) when anything but zeros follows the end mark at `offset` soon: archives put together by cat, of
// which readers see the first only.
void check_tar_end(ByteSource& tar, uint64_t offset, const std::string& path);

// A member's header and its content's padding, for writers: a regular file of mode 0644 with no owner and time.
// REQUIRES a name of 1 to 100 bytes and size < 8 GiB.
std::string tar_header(std::string_view name, uint64_t size);
inline uint64_t tar_padded(uint64_t size) { return (size + kTarBlock - 1) / kTarBlock * kTarBlock; }

}  // namespace skytrain::data
