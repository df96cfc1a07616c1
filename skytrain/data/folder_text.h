// skytrain/data/folder_text.h
//
// What a folder holds, in words, for messages. Thread-safe.

#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

// "a, b, c and 12 more"
std::string first_names(std::vector<std::string> names, size_t shown = 8);
// "the folder holds: a, b, c and 12 more", or "the folder is empty".
std::string folder_content(const FileSystem& fs, const std::string& folder);

}  // namespace skytrain::data
