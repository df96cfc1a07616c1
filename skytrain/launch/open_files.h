// skytrain/launch/open_files.h

#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace skytrain::launch {

// Paths at or below `folder` (absolute, without links) that one of these processes has open for writing. What is only
// mapped, and what we may not look at, is not seen.
std::vector<std::string> files_open_for_writing(const std::vector<pid_t>& processes, const std::string& folder);

}  // namespace skytrain::launch
