// skytrain/data/shard_bytes.h
//
// The bytes of shards as mosaicml-streaming and webdataset read them. Thread-safe.

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::data {

struct PackedSample {
  uint64_t number = 0;  // in the data set
  int64_t label = 0;
  std::string picture;  // the file: JPEG or PNG
};

// An MDS shard (mds.h) with the columns image (jpeg or png) and label (int). limit: what was aimed at, in bytes.
std::string make_mds_shard(std::span<const PackedSample> samples, const std::string& encoding, uint64_t limit);
// Bytes that a sample takes in it.
uint64_t mds_sample_bytes(uint64_t picture_bytes);
// What index.json says of a shard but its files and the number of samples; compression: "zstd:3", or "" for none.
Json mds_shard_fields(const std::string& encoding, const std::string& compression, uint64_t limit);

// A tar archive: members NUMBER.jpg or NUMBER.png, and NUMBER.cls, of each sample. NUMBER has nine digits or more.
std::string make_webdataset_shard(std::span<const PackedSample> samples);
uint64_t webdataset_sample_bytes(uint64_t picture_bytes);  // with a class of up to 512 digits

}  // namespace skytrain::data
