// skytrain/data/sparse_mds_test_data.h
//
// For tests and benchmarks: MDS sets of any number of samples that take hardly any disk. Shards are sparse files: their
// sizes are real, and blocks are there only for the samples that somebody is going to read.

#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"
#include "skytrain/data/mds_test_data.h"

namespace skytrain::data {

struct SparseMds {
  uint64_t shards = 0, samples_a_shard = 0;
  std::string picture;  // of every sample
  uint64_t classes = 1000;

  uint64_t samples() const { return shards * samples_a_shard; }
  uint64_t sample_bytes() const { return picture.size() + 12; }
  uint64_t offset(uint64_t sample) const { return 4 * (samples_a_shard + 2) + sample * sample_bytes(); }
  int64_t label(uint64_t index) const { return static_cast<int64_t>(index % classes); }
  std::string name(uint64_t shard) const { return str("shard.", shard, ".mds"); }
};

inline void write_at(int file, uint64_t offset, const std::string& bytes, const std::string& path) {
  if (::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ErrorKind::kEnvironment, path, "cannot write");
  }
}

// Writes index.json and the shards; `present`: indexes of the samples that can be read.
inline void put_sparse_mds(const std::string& folder, const SparseMds& set, std::vector<uint64_t> present) {
  std::sort(present.begin(), present.end());
  std::filesystem::create_directories(folder);
  std::ofstream index(folder + "/index.json");
  index << R"({"shards": [)";
  size_t next = 0;
  for (uint64_t shard = 0; shard < set.shards; ++shard) {
    const std::string path = folder + "/" + set.name(shard);
    const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    const uint64_t bytes = set.offset(set.samples_a_shard);
    if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
      throw Error(ErrorKind::kEnvironment, path, "cannot be made");
    }
    if (next < present.size() && present[next] / set.samples_a_shard == shard) {
      write_at(file.get(), 0, little(set.samples_a_shard, 4), path);
    }
    for (; next < present.size() && present[next] / set.samples_a_shard == shard; ++next) {
      const uint64_t sample = present[next] % set.samples_a_shard;
      write_at(file.get(), 4 + 4 * sample, little(set.offset(sample), 4) + little(set.offset(sample + 1), 4), path);
      write_at(file.get(), set.offset(sample), mds_sample(set.picture, set.label(present[next])), path);
    }
    index << (shard > 0 ? ", " : "") << mds_shard_json(set.name(shard), bytes, set.samples_a_shard);
  }
  index << R"(], "version": 2})";
  if (!index.flush()) throw Error(ErrorKind::kEnvironment, folder + "/index.json", "cannot write");
}

}  // namespace skytrain::data
