// skytrain/data/mds.h
//
// Format "mds": a folder that MosaicML Streaming wrote (version 2): index.json and shards of samples, raw or packed
// with zstd. A sample has one column of pictures (JPEG or PNG; which of them, its content says) and one of integers,
// its class; other columns are left alone (mds_index.h says which columns are taken).
//
// When the set is opened, offsets and classes of all samples are read, several shards at once, and each sample's sizes
// are checked; a sample takes 8 bytes of memory and one read when it is needed. Of a set of more samples than
// Limits::samples_in_memory, only index.json and the sizes of files are looked at: memory and the time to open it go
// with the shards, and offsets and class are read and checked with each sample. Packed shards are unpacked once, at
// that time, so that the order of samples does not matter (mds_store.h).
//
// A shard (docs of mosaicml-streaming, "MDS"; numbers are little-endian): u32 samples, u32 offset[samples + 1] from the
// file's start, the columns as JSON, the samples. A sample: u32 size of each column whose size varies, all values.

#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/mds_index.h"
#include "skytrain/data/mds_sample.h"
#include "skytrain/data/mds_store.h"

namespace skytrain::data {

class Mds final : public EncodedPictures {
 public:
  static constexpr uint64_t kUnpackedInMemory = uint64_t{512} << 20;
  // 32 MiB of offsets and classes. To read those of more samples takes longer than anybody waits for a first batch: a
  // page for each sample, which is a minute off a disk of 100,000 reads a second. Part of what a fingerprint is made
  // of: never changed.
  static constexpr uint64_t kSamplesInMemory = uint64_t{4} << 20;

  struct Limits {
    uint64_t unpacked_in_memory = kUnpackedInMemory;  // bytes, see MdsStore
    uint64_t samples_in_memory = kSamplesInMemory;    // sets of more are large
  };

  // spec.path: the folder, or its index.json. The fingerprint covers shards' names, and sizes and classes of samples
  // (of a large set: what index.json says of its raw shards), and is the same whether shards are packed or not. When
  // classes are to be counted (OpenOptions::count_classes) and options.classes does not tell their number, a large set
  // is read and checked as a small one is, and nothing of it is kept.
  static std::unique_ptr<Mds> open(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options,
                                   const Limits& limits);
  static std::unique_ptr<Mds> open(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options) {
    return open(fs, spec, options, Limits());
  }

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
  struct Extent {
    uint64_t begin, bytes;  // of a sample in its shard
  };

  Mds(const FileSystem& fs, const std::string& root, const recipe::DatasetSpec& spec, const OpenOptions& options,
      const Limits& limits);
  void read_tables();
  Table read_table(size_t shard) const;
  void check_count(size_t shard) const;
  int32_t read_label(std::span<const uint8_t> bytes, const Place& place) const;
  void describe(const OpenOptions& options);
  std::string fingerprint() const;
  Place place(uint64_t index) const;
  Extent extent(const Place& place) const;
  MdsValue find(size_t column, const Place& place, std::span<const uint8_t> head, uint64_t bytes) const;
  MdsValue find_on_disk(size_t column, const Place& place, const Extent& extent) const;
  [[noreturn]] void refuse(size_t shard, const std::string& what) const;

  const FileSystem& fs_;
  const std::string root_;
  const MdsIndex index_;
  const MdsStore store_;
  const uint64_t id_;                             // no other set of this process has it
  const int64_t outputs_;                         // OpenOptions::classes
  std::vector<uint64_t> ends_;                    // index after the last sample of each shard
  bool large_ = false;                            // tables_ is empty
  std::vector<Table> tables_;                     // of each shard
  std::unique_ptr<std::atomic<bool>[]> counted_;  // of a large set: shards that hold as many samples as they should
  DatasetInfo info_;
};

}  // namespace skytrain::data
