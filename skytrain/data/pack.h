// skytrain/data/pack.h
//
// A data set of pictures, written anew as shards. The files of the pictures are kept as they are, byte for byte; raw
// pixels (idx, cifar10) become PNG files, without loss (raw_as_png.h).
//
// A shard is written to NAME.tmp, made durable and renamed; then a line in DST/pack.jsonl says so, with its size and
// checksum. Whatever ends the work (a full disk, Ctrl-C, a crash), packing again goes on: shards that the lines name
// and that are as they say are kept. index.json comes last. What is written depends on the data set and the options
// only, not on threads or interruptions.

#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/data/dataset.h"

namespace skytrain::data {

struct PackOptions {
  std::string format;                          // "mds" or "webdataset"
  int zstd_level = 0;                          // of mds: 1 to 19; 0: raw
  uint64_t shard_bytes = uint64_t{64} << 20;   // a shard has no more, unless one sample has; 64 KiB to 2 GiB
  int threads = 0;                             // 0: as many as there are cores; each holds a shard in memory
  std::function<void(uint64_t samples)> done;  // told the sum of samples of finished shards; from one thread at a time
  std::function<bool()> stop;                  // true: end soon
};

struct PackResult {
  uint64_t samples = 0, shards = 0;
  uint64_t kept = 0;   // shards that were there already
  uint64_t bytes = 0;  // of all shards' files
};

// source: of pictures. destination: a folder that is made, is empty, or holds what an earlier call with
// the same source and options left. Throws Error(kData): a source without pictures, a sample that is neither
// JPEG nor PNG, another content of the folder; Error(kEnvironment); Error(kInterrupted) when options.stop says so.
PackResult pack(FileSystem& fs, const Dataset& source, const std::string& destination, const PackOptions& options);

}  // namespace skytrain::data
