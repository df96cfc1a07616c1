// skytrain/data/mds_index.h
//
// The index.json of a data set in MosaicML Streaming's format MDS, version 2. Nothing but this text is looked at.

#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skytrain::data {

struct MdsColumn {
  std::string name, encoding;    // "image", "jpeg"
  std::optional<uint32_t> size;  // bytes of a value, > 0; nullopt: it varies
};

struct MdsFile {
  std::string name;                           // within the folder of index.json, never out of it
  uint64_t bytes = 0;                         // of the file
  std::map<std::string, std::string> hashes;  // hex digits, by kind: "xxh64", "sha1"
};

struct MdsShard {
  uint64_t samples = 0;
  MdsFile raw;
  std::optional<MdsFile> packed;  // with zstd
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // in the order in which their values lie in a sample
  std::vector<MdsShard> shards;
  size_t picture = 0, label = 0;  // columns
  bool label_by_name = false;     // the class column is called so; otherwise it is the only integer

  uint64_t label_bytes() const { return columns[label].size.value(); }
  bool label_is_signed() const { return columns[label].encoding[0] == 'i'; }
};

// path: of index.json, for errors. Throws Error(kData) that names file and field: no JSON, another version or format,
// no shards, fields that are missing or disagree, pickled columns, encodings and compressions that are not known, names
// that lead out of the folder, no column that is a picture or a class.
MdsIndex parse_mds_index(std::string_view text, const std::string& path);

}  // namespace skytrain::data
