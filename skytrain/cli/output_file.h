// skytrain/cli/output_file.h

#pragma once
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::cli {

// Where a verb writes the file that `flag` names, absolute. What is there is replaced; a link to a file stays a link;
// what is no file (a device, a folder) is not replaced by one. Throws Error(kUsage, flag) for that, and when the file's
// folder is not there.
std::string output_file(const FileSystem& fs, const std::string& given, const std::string& flag);

}  // namespace skytrain::cli
