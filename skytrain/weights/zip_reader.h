// skytrain/weights/zip_reader.h
//
// Reads zip archives as PyTorch writes them: tensors and pickles stored, not compressed. The directory and the members'
// own headers must agree, members may not overlap, no name may lead out of a folder. Names and content are views into
// the archive's bytes, so memory is a small multiple of the directory. Errors are Error(kData) naming file and member.

#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/weights/refusal.h"

namespace skytrain::weights {

struct ZipMember {
  std::string_view name;
  uint64_t header_at = 0;              // of its local header in the archive
  uint64_t size = 0, stored_size = 0;  // they differ when it is compressed
  uint64_t data_at = 0;                // known once its local header was read
  uint32_t crc32 = 0;
  uint16_t flags = 0, method = 0;
};

// Where the central directory is, from the archive's last bytes.
struct ZipDirectoryPlace {
  uint64_t begin = 0, size = 0, count = 0;
};
// tail: the archive's end, at least kZipTail bytes or all of it.
inline constexpr size_t kZipTail = 66 * 1024;
ZipDirectoryPlace locate_zip_directory(std::span<const std::byte> tail, uint64_t archive_bytes, const Refusal& refuse);
// The members in the order of the directory, which is at `place`. Checks what the directory alone can tell.
std::vector<ZipMember> parse_zip_directory(std::span<const std::byte> directory, const ZipDirectoryPlace& place,
                                           const Refusal& refuse);

class ZipReader {
 public:
  // Checks everything but the members' content. `archive` must outlive this, and so must `refuse`.
  ZipReader(std::span<const std::byte> archive, const Refusal& refuse);

  const std::vector<ZipMember>& members() const { return members_; }  // in the order of their place in the file
  const ZipMember* find(std::string_view name) const;
  // Of a stored member; a compressed one is refused. Checked against its CRC-32 in each call. An archive whose CRCs are
  // all 0 has none: torch.save leaves them out when told so (torch.serialization.set_crc32_options(False)).
  std::span<const std::byte> content(const ZipMember& member) const;

 private:
  uint64_t end_of(ZipMember& member);  // reads the local header

  std::span<const std::byte> archive_;
  const Refusal& refuse_;
  uint64_t directory_begin_ = 0;
  bool has_checksums_ = false;
  std::vector<ZipMember> members_;
  std::vector<const ZipMember*> by_name_;
};

}  // namespace skytrain::weights
