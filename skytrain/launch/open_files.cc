#include "skytrain/launch/open_files.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

bool is_for_writing(const std::string& info_path) {
  std::ifstream file(info_path);
  for (std::string word; file >> word;) {
    if (word != "flags:") continue;
    unsigned flags = 0;
    file >> std::oct >> flags;
    return (flags & O_ACCMODE) != O_RDONLY;
  }
  return false;
}

}  // namespace

std::vector<std::string> files_open_for_writing(const std::vector<pid_t>& processes, const std::string& folder) {
  std::vector<std::string> paths;
  for (const pid_t pid : processes) {
    std::error_code code;
    std::filesystem::directory_iterator entry(str("/proc/", pid, "/fd"), code), end;
    for (; !code && entry != end; entry.increment(code)) {
      std::error_code gone;
      const std::string path = std::filesystem::read_symlink(entry->path(), gone).string();
      if (gone || (path != folder && path.rfind(folder + "/", 0) != 0)) continue;
      if (is_for_writing(str("/proc/", pid, "/fdinfo/", entry->path().filename().string()))) paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace skytrain::launch
