#include "skytrain/data/mds_store.h"

#include <cstdlib>
#include <cstring>

#include "skytrain/base/allocate.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/parallel.h"
#include "skytrain/data/zstd.h"

namespace skytrain::data {

MdsStore::MdsStore(const FileSystem& fs, const std::string& root, const MdsIndex& index, uint64_t memory_limit)
    : fs_(fs) {
  uint64_t total = 0;
  std::vector<size_t> packed;
  parts_.resize(index.shards.size());
  for_each_parallel(parts_.size(), [&](uint64_t i) {  // a disk of the network answers several at once
    parts_[static_cast<size_t>(i)] = find(root, index.shards[static_cast<size_t>(i)], static_cast<size_t>(i));
  });
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (!part.packed) continue;
    part.at = total;
    total += part.bytes;
    packed.push_back(i);
  }
  if (packed.empty()) return;
  if (total <= memory_limit) {
    memory_ = allocate_bytes(static_cast<size_t>(total), root);
    memory_bytes_ = total;
  } else {
    const char* wished = std::getenv("TMPDIR");
    scratch_ = std::make_unique<ScratchFile>(
        std::vector<std::string>{wished != nullptr ? wished : "", root, "/var/tmp"}, total);
    note_ = str(root, ": ", packed.size(), " packed shards are unpacked to ", human_bytes(static_cast<double>(total)),
                " of disk in ", scratch_->folder(), ", in every run anew: unpack them once with zstd -d");
  }
  for_each_parallel(packed.size(), [&](uint64_t p) {
    const Part& part = parts_[packed[static_cast<size_t>(p)]];
    uint64_t at = part.at;
    unzstd(fs_, part.path, part.bytes, [&](std::span<const std::byte> piece) {
      if (scratch_) {
        scratch_->write(at, piece);
      } else if (!piece.empty()) {
        std::memcpy(memory_.get() + at, piece.data(), piece.size());
      }
      at += piece.size();
    });
  });
}

MdsStore::Part MdsStore::find(const std::string& root, const MdsShard& shard, size_t number) const {
  // What is there unpacked is taken first, as mosaicml-streaming does.
  for (const MdsFile* file : {&shard.raw, shard.packed ? &*shard.packed : nullptr}) {
    if (file == nullptr) continue;
    const std::string path = root + "/" + file->name;
    const std::optional<FileInfo> info = fs_.stat(path);
    if (!info) continue;
    const bool packed = file != &shard.raw;
    if (info->type != FileInfo::Type::kFile) throw Error(ErrorKind::kData, path, "is no file");
    if (info->size != file->bytes) {
      throw Error(ErrorKind::kData, path,
                  str("has ", info->size, " bytes, index.json says ", file->bytes, " (shards[", number, "].",
                      packed ? "zip_data" : "raw_data", ".bytes)"),
                  "copy or download the shard and index.json again");
    }
    return {.path = path, .bytes = shard.raw.bytes, .packed = packed};
  }
  throw Error(ErrorKind::kData, root + "/" + (shard.packed ? shard.packed->name : shard.raw.name),
              str("is not there; index.json names it (shards[", number, "])"),
              "copy or download the whole folder again");
}

void MdsStore::read(size_t shard, uint64_t offset, std::span<std::byte> out) const {
  const Part& part = parts_[shard];
  if (!part.packed) {
    fs_.read_range(part.path, offset, out);
  } else if (scratch_) {
    scratch_->read(part.at + offset, out);
  } else {
    std::memcpy(out.data(), memory_.get() + part.at + offset, out.size());
  }
}

FileSource MdsStore::source(size_t shard) const {
  return {[this, shard](uint64_t offset, std::span<std::byte> out) { read(shard, offset, out); }, parts_[shard].bytes};
}

}  // namespace skytrain::data
