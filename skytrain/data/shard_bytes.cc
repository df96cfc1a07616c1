#include "skytrain/data/shard_bytes.h"

#include <algorithm>

#include "skytrain/data/tar.h"
#include "skytrain/image/picture.h"

namespace skytrain::data {
namespace {

void put_little(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_member(std::string& out, const std::string& name, std::string_view content) {
  out += tar_header(name, content.size());
  out += content;
  out.append(static_cast<size_t>(tar_padded(content.size()) - content.size()), '\0');
}

}  // namespace

uint64_t mds_sample_bytes(uint64_t picture_bytes) { return 4 + 4 + picture_bytes + 8; }  // offset, size, image, label

uint64_t webdataset_sample_bytes(uint64_t picture_bytes) { return 3 * kTarBlock + tar_padded(picture_bytes); }

Json mds_shard_fields(const std::string& encoding, const std::string& compression, uint64_t limit) {
  return {{"column_encodings", {encoding, "int"}},
          {"column_names", {"image", "label"}},
          {"column_sizes", {nullptr, 8}},
          {"compression", compression.empty() ? Json() : Json(compression)},
          {"format", "mds"},
          {"hashes", {"xxh64"}},
          {"size_limit", limit},
          {"version", 2}};
}

std::string make_mds_shard(std::span<const PackedSample> samples, const std::string& encoding, uint64_t limit) {
  const std::string config = mds_shard_fields(encoding, "", limit).dump();
  uint64_t end = 4 * (samples.size() + 2) + config.size();
  std::string shard;
  put_little(shard, samples.size(), 4);
  for (const PackedSample& sample : samples) {
    put_little(shard, end, 4);
    end += mds_sample_bytes(sample.picture.size()) - 4;
  }
  put_little(shard, end, 4);
  shard.reserve(static_cast<size_t>(end));
  shard += config;
  for (const PackedSample& sample : samples) {
    put_little(shard, sample.picture.size(), 4);
    shard += sample.picture;
    put_little(shard, static_cast<uint64_t>(sample.label), 8);
  }
  return shard;
}

std::string make_webdataset_shard(std::span<const PackedSample> samples) {
  std::string shard;
  for (const PackedSample& sample : samples) {
    std::string number = std::to_string(sample.number);
    number.insert(0, 9 - std::min<size_t>(9, number.size()), '0');
    const std::span<const uint8_t> head(reinterpret_cast<const uint8_t*>(sample.picture.data()), sample.picture.size());
    put_member(shard, number + (image::is_png(head) ? ".png" : ".jpg"), sample.picture);
    put_member(shard, number + ".cls", std::to_string(sample.label));
  }
  // Two empty blocks are the end mark; archives are filled up to records of twenty blocks.
  constexpr size_t kRecord = 20 * kTarBlock;
  const size_t used = shard.size() + 2 * kTarBlock;
  shard.append(2 * kTarBlock + (kRecord - used % kRecord) % kRecord, '\0');
  return shard;
}

}  // namespace skytrain::data
