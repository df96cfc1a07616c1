#include "skytrain/cli/output_file.h"

#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/absolute_path.h"

namespace skytrain::cli {

std::string output_file(const FileSystem& fs, const std::string& given, const std::string& flag) {
  std::string path = absolute_path(given);
  const std::optional<FileInfo> there = fs.stat(path);
  if (there && there->type != FileInfo::Type::kFile)
    throw Error(ErrorKind::kUsage, flag, "\"" + printable(given) + "\" is there already and no file", "name a file");
  if (there) return std::filesystem::canonical(path).string();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!fs.exists(folder)) throw Error(ErrorKind::kUsage, flag, "there is no folder " + printable(folder));
  return path;
}

}  // namespace skytrain::cli
