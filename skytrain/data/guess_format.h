// skytrain/data/guess_format.h
//
// Which format lies at a path, by names and the first bytes of files. Thread-safe.

#pragma once
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

// The name of a format, or "" when nothing tells. Throws Error(kEnvironment) for disk trouble.
std::string guess_format(const FileSystem& fs, const std::string& path);

}  // namespace skytrain::data
