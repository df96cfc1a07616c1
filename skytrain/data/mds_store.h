// skytrain/data/mds_store.h
//
// The bytes of a data set's MDS shards, at any place: in the shards' own files, where those are there; shards that are
// there packed only are unpacked once, all of them, when the store is made. Up to a limit they stay in memory, beyond
// it they lie in one unnamed file on the disk. So reading a sample never unpacks anything, in whatever order samples
// come.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/scratch_file.h"
#include "skytrain/data/byte_source.h"
#include "skytrain/data/mds_index.h"

namespace skytrain::data {

class MdsStore {
 public:
  // root: folder of index.json. memory_limit: bytes that unpacked shards may take in memory; when they are more, all go
  // to a file in TMPDIR, beside the shards or in /var/tmp, whichever has room. Files are compared with the sizes that
  // the index gives. Throws Error(kData) that names the shard, or Error(kEnvironment) when there is no room.
  MdsStore(const FileSystem& fs, const std::string& root, const MdsIndex& index, uint64_t memory_limit);

  // Thread-safe. REQUIRES that the range lies within the shard's raw bytes.
  void read(size_t shard, uint64_t offset, std::span<std::byte> out) const;
  FileSource source(size_t shard) const;

  const std::string& path(size_t shard) const { return parts_[shard].path; }  // of the file that its bytes came from
  uint64_t bytes_in_memory() const { return memory_bytes_; }
  const std::string& note() const { return note_; }  // what people should know of the unpacking; "": nothing

 private:
  struct Part {
    std::string path;
    uint64_t bytes = 0;
    bool packed = false;
    uint64_t at = 0;  // of a packed shard: where its raw bytes begin, among those of all packed ones
  };

  Part find(const std::string& root, const MdsShard& shard, size_t number) const;

  const FileSystem& fs_;
  std::vector<Part> parts_;
  std::unique_ptr<uint8_t[]> memory_;
  std::unique_ptr<ScratchFile> scratch_;
  uint64_t memory_bytes_ = 0;
  std::string note_;
};

}  // namespace skytrain::data
