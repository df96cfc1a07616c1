// skytrain/data/webdataset_index.h
//
// Where the samples of a WebDataset shard lie, found by reading its headers and classes, and none of its pictures.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

// 16 bytes, since there may be hundreds of millions. Tar archives consist of blocks of 512 bytes.
struct WebdatasetSample {
  uint32_t start = 0;  // block of the first header of the picture's member, which holds its name
  uint32_t data = 0;   // block of the picture
  uint32_t size = 0;   // bytes of the picture
  int32_t label = 0;   // >= 0
};

struct WebdatasetShard {
  std::string path;
  std::vector<WebdatasetSample> samples;  // in the order of the shard
  std::string hash;                       // XXH3-128 of key, picture's size and label of each sample
  std::vector<std::string> passed_over;   // members that belong to no sample, the first few
};

// Of one shard. classes: labels must be below it; 0: anything goes. Thread-safe. Throws Error(kData) that names shard
// and sample or member: no picture, more than one, no class, a class that is no number or too high, a field twice, what
// read_tar_member() refuses, and shards of 2 TiB and more.
WebdatasetShard index_webdataset_shard(const FileSystem& fs, const std::string& path, int64_t classes);

// Fields that hold the picture of a sample: jpg, jpeg, png.
bool is_picture_field(const std::string& field);

}  // namespace skytrain::data
