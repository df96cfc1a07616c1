#include "skytrain/data/guess_format.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace skytrain::data {
namespace {

using Names = std::vector<std::string>;

bool any_begins(const Names& names, std::string_view prefix) {
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
}

bool any_ends(const Names& names, std::string_view suffix) {
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.ends_with(suffix); });
}

bool is_tar(const FileSystem& fs, const std::string& path, uint64_t size) {
  constexpr uint64_t kMagicAt = 257;
  std::string magic(5, '\0');
  if (size < 512) return false;
  fs.read_range(path, kMagicAt, std::as_writable_bytes(std::span(magic.data(), magic.size())));
  return magic == "ustar";
}

}  // namespace

std::string guess_format(const FileSystem& fs, const std::string& path) {
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) return path.find('{') != std::string::npos && path.ends_with(".tar") ? "webdataset" : "";
  if (info->type != FileInfo::Type::kDirectory) {
    if (path.ends_with(".csv")) return "csv";
    if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return "jsonl";
    if (path.ends_with(".bin") || path.ends_with(".bin.gz")) return "cifar10";
    if (path.ends_with("/index.json")) return "mds";
    return path.ends_with(".tar") || is_tar(fs, path, info->size) ? "webdataset" : "";
  }
  const Names names = fs.list(path);
  if (any_begins(names, "train-images-") || any_begins(names, "train-labels-") || any_begins(names, "t10k-")) {
    return "idx";
  }
  if (any_begins(names, "data_batch_") || any_begins(names, "test_batch") || any_begins(names, "cifar-10-")) {
    return "cifar10";
  }
  if (std::find(names.begin(), names.end(), "index.json") != names.end()) return "mds";
  if (any_ends(names, ".tar")) return "webdataset";
  const bool folders = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::optional<FileInfo> entry = fs.stat(path + "/" + name);
    return !name.starts_with(".") && entry && entry->type == FileInfo::Type::kDirectory;
  });
  // Pictures without folders of classes are nothing that can be opened, but what is missing is the folders.
  const auto is_picture = [](std::string name) {
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return name.ends_with(".jpg") || name.ends_with(".jpeg") || name.ends_with(".png");
  };
  return folders || std::any_of(names.begin(), names.end(), is_picture) ? "imagefolder" : "";
}

}  // namespace skytrain::data
