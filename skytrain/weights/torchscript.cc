#include "skytrain/weights/torchscript.h"

#include <algorithm>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/weights/weights.h"
#include "skytrain/weights/zip_format.h"

namespace skytrain::weights {
namespace {

constexpr uint64_t kMaxDirectory = uint64_t{256} << 20;

std::vector<std::byte> read(const FileSystem& fs, const std::string& path, uint64_t begin, uint64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  fs.read_range(path, begin, bytes);
  return bytes;
}

}  // namespace

bool names_torchscript(const std::vector<ZipMember>& members) {
  return std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
    const size_t slash = member.name.find('/');
    if (slash == member.name.npos) return false;
    const std::string_view inside = member.name.substr(slash + 1);
    return inside == "constants.pkl" || inside.starts_with("code/");
  });
}

bool is_torchscript(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info || info->type != FileInfo::Type::kFile || info->size < zip::kEndBytes) return false;
  const Refusal refuse(path);
  const std::vector<std::byte> tail =
      read(fs, path, info->size - std::min<uint64_t>(info->size, kZipTail), std::min<uint64_t>(info->size, kZipTail));
  std::vector<std::byte> directory;
  ZipDirectoryPlace place;
  try {
    place = locate_zip_directory(tail, info->size, refuse);
    if (place.size > kMaxDirectory) return false;
  } catch (const Error&) {  // no archive, or a damaged one
    return false;
  }
  directory = read(fs, path, place.begin, place.size);
  try {
    return names_torchscript(parse_zip_directory(directory, place, refuse));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace skytrain::weights
