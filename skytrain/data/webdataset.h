// skytrain/data/webdataset.h
//
// Format "webdataset": tar archives whose members of one name (up to the first dot) are a sample, as the webdataset
// library reads them. A sample has one picture (jpg, jpeg, png; what it is, its content says) and a class (cls, a
// number as text); other fields are left alone.
//
// Shards are indexed when the set is opened, several at once: headers and classes are read, pictures are not. A sample
// takes 16 bytes of memory, and one read when it is needed: its name comes along with its picture.

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/webdataset_index.h"

namespace skytrain::data {

class Webdataset final : public EncodedPictures {
 public:
  // spec.path: a shard, a folder of shards, or a pattern (webdataset_names.h). Samples are in the order of the shards
  // and of their members. The fingerprint covers names of shards, keys, sizes of pictures and labels.
  static std::unique_ptr<Webdataset> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                          const OpenOptions& options);

  const DatasetInfo& info() const override { return info_; }
  std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const override;
  uint64_t encoded_bytes(uint64_t index) const override { return sample(index).second.size; }
  int64_t label(uint64_t index) const override { return sample(index).second.label; }
  std::string name(uint64_t index) const override;

 private:
  Webdataset(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options);
  void describe(const std::string& path, const OpenOptions& options, std::vector<std::string> passed_over);
  std::pair<const WebdatasetShard&, const WebdatasetSample&> sample(uint64_t index) const;

  const FileSystem& fs_;
  std::vector<WebdatasetShard> shards_;
  std::vector<uint64_t> ends_;  // index after the last sample of each shard
  DatasetInfo info_;
};

}  // namespace skytrain::data
