// skytrain/data/mds.h
//
// Format "mds": a folder that MosaicML Streaming wrote (version 2): index.json and shards of samples, raw or packed
// with zstd. A sample has one column of pictures (JPEG or PNG; which of them, its content says) and one of integers,
// its class; other columns are left alone (mds_index.h says which columns are taken).
//
// When the set is opened, offsets and classes of all samples are read, several shards at once, and each sample's sizes
// are checked; a sample takes 8 bytes of memory and one read when it is needed. Packed shards are unpacked once, at
// that time, so that the order of samples does not matter (mds_store.h).
//
// A shard (docs of mosaicml-streaming, "MDS"; numbers are little-endian): u32 samples, u32 offset[samples + 1] from the
// file's start, the columns as JSON, the samples. A sample: u32 size of each column whose size varies, all values.

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/mds_index.h"
#include "skytrain/data/mds_store.h"

namespace skytrain::data {

class Mds final : public EncodedPictures {
 public:
  static constexpr uint64_t kUnpackedInMemory = uint64_t{512} << 20;

  // spec.path: the folder, or its index.json. The fingerprint covers shards' names, and sizes and classes of samples,
  // and is the same whether shards are packed or not. memory_limit: see MdsStore.
  static std::unique_ptr<Mds> open(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options,
                                   uint64_t memory_limit = kUnpackedInMemory);

  const DatasetInfo& info() const override { return info_; }
  std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const override;
  uint64_t encoded_bytes(uint64_t index) const override;
  int64_t label(uint64_t index) const override;
  std::string name(uint64_t index) const override;
  FileCheck check_files() const override;

 private:
  // Of a shard.
  struct Table {
    std::vector<uint32_t> offsets;  // of its samples, and of its end
    std::vector<int32_t> labels;
    std::string hash;  // XXH3-128 of size and label of each sample
  };
  struct Place {
    size_t shard, sample;
  };

  Mds(const FileSystem& fs, const std::string& root, const recipe::DatasetSpec& spec, const OpenOptions& options,
      uint64_t memory_limit);
  Table read_table(size_t shard, int64_t classes) const;
  int32_t read_label(std::span<const uint8_t> bytes, size_t shard, uint64_t sample, int64_t classes) const;
  void describe(const OpenOptions& options);
  Place place(uint64_t index) const;

  const FileSystem& fs_;
  const std::string root_;
  const MdsIndex index_;
  const MdsStore store_;
  std::vector<Table> tables_;
  std::vector<uint64_t> ends_;  // index after the last sample of each shard
  DatasetInfo info_;
};

}  // namespace skytrain::data
