// skytrain/cli/absolute_path.h
//
// Paths as the user gave them, for records and messages that outlive the current folder.

#pragma once
#include <filesystem>
#include <string>

namespace skytrain::cli {

// Absolute, without "." and "..", and without a slash at its end.
inline std::string absolute_path(const std::string& path) {
  std::string full = std::filesystem::absolute(path).lexically_normal().string();
  while (full.size() > 1 && full.back() == '/') full.pop_back();
  return full;
}

}  // namespace skytrain::cli
