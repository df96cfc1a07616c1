// skytrain/data/webdataset_names.h
//
// Names as the webdataset library takes them: which sample a member of a shard belongs to, and which shards a pattern
// stands for. Thread-safe.

#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

struct WebdatasetName {
  std::string key;    // of the sample: folder and name up to its first dot
  std::string field;  // what follows that dot, in lower case: "jpg", "seg.png"
};

// By ^((?:.*/|)[^.]+)[.]([^/]*)$ (webdataset 1.0: tariterators.py, base_plus_ext). nullopt: belongs to none.
std::optional<WebdatasetName> split_webdataset_name(std::string_view member);

// Members that webdataset passes over: __name__ at the top or a folder of that kind (skip_meta); and, beyond it, hidden
// files, of which it makes fields of a nameless sample.
bool is_webdataset_meta(std::string_view member);

// "a-{000..146}.tar" and "a-{x,y}.tar", any number of braces, not within each other: as bash expands them, in order. A
// text without braces is itself. Throws Error(kRecipe, where) for braces that make no sense or more than a million
// names.
std::vector<std::string> expand_braces(std::string_view pattern, const std::string& where);

// The shards that a path stands for, sorted as they are read: a .tar file, all *.tar of a folder by name, or a pattern.
// What else lies in the folder goes to passed_over. Throws Error(kData): nothing there, no shard, compressed shards.
std::vector<std::string> list_shards(const FileSystem& fs, const std::string& path, const std::string& where,
                                     std::vector<std::string>& passed_over);

}  // namespace skytrain::data
