// An MDS data set: input that begins with '{' is its index.json, beside a good shard; other input is its only shard,
// raw and packed, whose index agrees with its size and its number of samples.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "skytrain/base/error.h"
#include "skytrain/data/mds.h"
#include "skytrain/data/mds_test_data.h"

namespace {

using namespace skytrain;  // NOLINT(google-build-using-namespace)

// What every sample holds; nullopt: the set, or one of them, is refused.
std::optional<std::string> content(const FileSystem& fs, uint64_t samples_in_memory) {
  recipe::DatasetSpec spec;
  spec.format = "mds";
  spec.path = "/set";
  spec.size = 1;
  try {
    const auto set = data::Mds::open(fs, spec, {.classes = 1000},
                                     {.unpacked_in_memory = 1 << 16, .samples_in_memory = samples_in_memory});
    data::Scratch scratch;
    std::string all;
    for (uint64_t i = 0; i < set->info().samples; ++i) {
      const int64_t before = set->label(i);
      const std::span<const uint8_t> picture = set->encoded(i, scratch);
      all.append(picture.begin(), picture.end()).append(" ").append(std::to_string(set->label(i))).append(" ");
      if (before != set->label(i) || before < 0 || before >= 1000 || set->name(i).empty()) std::abort();
    }
    set->check_files();
    return all;
  } catch (const Error& error) {
    // Disk that the index claims to need may be lacking.
    const bool expected = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kEnvironment;
    if (!expected || error.problem().find('\n') != std::string::npos) std::abort();
  }
  return std::nullopt;
}

// A large set is read with its samples: no less is checked, and nothing else comes out. Shards without samples are not
// looked at.
void read(const FileSystem& fs, bool shards_have_samples) {
  const auto small = content(fs, data::Mds::kSamplesInMemory), large = content(fs, 0);
  if (small != large && (small || shards_have_samples)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  MemoryFileSystem fs;
  if (bytes.starts_with('{')) {
    data::put_mds(fs, "/set", {{data::mds_sample("picture", 3)}});
    data::put_mds(fs, "/set", {{data::mds_sample("picture", 3)}}, /*packed=*/true);
    data::put_file(fs, "/set/index.json", bytes);
    read(fs, false);
    return 0;
  }
  uint64_t samples = 0;
  for (size_t i = 0; i < 4 && i < size; ++i) samples |= uint64_t{data[i]} << (8 * i);
  data::put_file(fs, "/set/shard.00000.mds", bytes);
  Json json = data::mds_shard_json("shard.00000.mds", size, samples & 0x3fffffff);
  data::put_file(fs, "/set/index.json", Json{{"version", 2}, {"shards", {json}}}.dump());
  read(fs, true);
  fs.remove_file("/set/shard.00000.mds");
  data::put_file(fs, "/set/shard.00000.mds.zstd", bytes);
  json["compression"] = "zstd";
  json["raw_data"]["bytes"] = 120;
  json["samples"] = 1;
  json["zip_data"] = {{"basename", "shard.00000.mds.zstd"}, {"bytes", size}, {"hashes", Json::object()}};
  data::put_file(fs, "/set/index.json", Json{{"version", 2}, {"shards", {json}}}.dump());
  read(fs, true);
  return 0;
}
