// skytrain/data/mds_test_data.h
//
// For tests: makes MDS shards and their index.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/zstd.h"

namespace skytrain::data {

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// Columns image (png) and label (int).
inline std::string mds_sample(const std::string& image, int64_t label) {
  return little(image.size(), 4) + image + little(static_cast<uint64_t>(label), 8);
}

inline std::string mds_shard(const std::vector<std::string>& samples) {
  const std::string config = "{}";
  uint64_t offset = 4 * (samples.size() + 2) + config.size();
  std::string head = little(samples.size(), 4), body;
  for (const std::string& sample : samples) {
    head += little(offset, 4);
    offset += sample.size();
    body += sample;
  }
  return head + little(offset, 4) + config + body;
}

inline Json mds_shard_json(const std::string& name, uint64_t bytes, uint64_t samples) {
  return {{"column_encodings", {"png", "int"}},
          {"column_names", {"image", "label"}},
          {"column_sizes", {nullptr, 8}},
          {"compression", nullptr},
          {"format", "mds"},
          {"hashes", Json::array()},
          {"raw_data", {{"basename", name}, {"bytes", bytes}, {"hashes", Json::object()}}},
          {"samples", samples},
          {"size_limit", 1 << 26},
          {"version", 2},
          {"zip_data", nullptr}};
}

// A folder with these shards, raw, or packed only.
inline Json put_mds(FileSystem& fs, const std::string& folder, const std::vector<std::vector<std::string>>& shards,
                    bool packed = false) {
  Json index = {{"version", 2}, {"shards", Json::array()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = "shard.0000" + std::to_string(i) + ".mds", raw = mds_shard(shards[i]);
    Json json = mds_shard_json(name, raw.size(), shards[i].size());
    if (packed) {
      const std::string small = zstd(raw, 3);
      put_file(fs, str(folder, "/", name, ".zstd"), small);
      json["compression"] = "zstd:3";
      json["zip_data"] = {{"basename", name + ".zstd"}, {"bytes", small.size()}, {"hashes", Json::object()}};
    } else {
      put_file(fs, str(folder, "/", name), raw);
    }
    index["shards"].push_back(std::move(json));
  }
  put_file(fs, folder + "/index.json", index.dump());
  return index;
}

}  // namespace skytrain::data
