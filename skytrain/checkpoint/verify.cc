#include "skytrain/checkpoint/verify.h"

#include <algorithm>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/manifest.h"

namespace skytrain::checkpoint {
namespace {

constexpr size_t kChunk = size_t{4} << 20;

std::string hash_of(const FileSystem& fs, const std::string& path, uint64_t bytes) {
  Xxh128 hash;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<uint64_t>(bytes, kChunk)));
  for (uint64_t at = 0; at < bytes; at += chunk.size()) {
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min<uint64_t>(bytes - at, chunk.size())));
    fs.read_range(path, at, piece);
    hash.update(piece);
  }
  return hash.hex();
}

// Empty when the file is fine.
std::string damage_of(const FileSystem& fs, const std::string& folder, const Manifest::File& file, Depth depth) {
  const std::string path = folder + "/" + file.name;
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) return file.name + " is missing";
  if (info->type != FileInfo::Type::kFile) return file.name + " is not a file";
  if (info->size != file.bytes) return str(file.name, " is ", info->size, " bytes, manifest says ", file.bytes);
  if (depth == Depth::kSizes) return "";
  if (hash_of(fs, path, file.bytes) != file.xxh128) {
    return file.name + " does not match its hash in the manifest: damaged, or another checkpoint's";
  }
  read_safetensors_header(fs, path);
  return "";
}

// The error as one clause that names the file without the checkpoint's folder.
std::string clause(const Error& error, const std::string& folder) {
  std::string where = error.where();
  if (where.starts_with(folder + "/")) where.erase(0, folder.size() + 1);
  return where.empty() ? error.problem() : str(where, ": ", error.problem());
}

}  // namespace

Verification verify(const FileSystem& fs, const std::string& checkpoint_path, Depth depth) {
  Verification result;
  try {
    result.manifest = read_manifest(fs, checkpoint_path);
    for (const Manifest::File& file : result.manifest->files) {
      result.reason = damage_of(fs, checkpoint_path, file, depth);
      if (result.reason.empty()) continue;
      result.verdict = Verdict::kDamaged;
      break;
    }
  } catch (const TooNew& error) {
    result.verdict = Verdict::kTooNew;
    result.reason = clause(error, checkpoint_path);
  } catch (const Error& error) {
    result.verdict = error.kind() == ErrorKind::kData ? Verdict::kDamaged : Verdict::kUnreadable;
    result.reason = clause(error, checkpoint_path);
  }
  return result;
}

}  // namespace skytrain::checkpoint
