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

std::string hash_of(const FileSystem& fs, const std::string& path, uint64_t begin, uint64_t end) {
  Xxh128 hash;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<uint64_t>(end - begin, kChunk)));
  for (uint64_t at = begin; at < end; at += chunk.size()) {
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min<uint64_t>(end - at, chunk.size())));
    fs.read_range(path, at, piece);
    hash.update(piece);
  }
  return hash.hex();
}

constexpr size_t kMostNamed = 5;

// " (tensors a, b)": those that are not what the manifest says; "" when none can be told.
std::string damaged_tensors(const FileSystem& fs, const std::string& path, const Manifest::File& file) {
  if (file.tensors.empty()) return "";
  std::vector<std::string> damaged;
  try {
    const SafetensorsHeader header = read_safetensors_header(fs, path);
    for (const auto& [name, hash] : file.tensors) {
      const auto found = header.arrays.find(name);
      if (found == header.arrays.end() || hash_of(fs, path, found->second.begin, found->second.end) != hash) {
        damaged.push_back(printable(name));
      }
    }
  } catch (const Error& error) {
    return " (its header)";
  }
  if (damaged.empty()) return " (its header)";
  const size_t count = damaged.size();
  damaged.resize(std::min(kMostNamed, count));
  return str(count == 1 ? " (tensor " : " (tensors ", join(damaged, ", "),
             count > kMostNamed ? str(" and ", count - kMostNamed, " more") : "", ")");
}

// Empty when the file is fine.
std::string damage_of(const FileSystem& fs, const std::string& folder, const Manifest::File& file, Depth depth) {
  const std::string path = folder + "/" + file.name;
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) return file.name + " is missing";
  if (info->type != FileInfo::Type::kFile) return file.name + " is not a file";
  if (info->size != file.bytes) return str(file.name, " is ", info->size, " bytes, manifest says ", file.bytes);
  if (depth == Depth::kSizes) return "";
  if (hash_of(fs, path, 0, file.bytes) != file.xxh128) {
    return str(file.name, " does not match its hash in the manifest: damaged", damaged_tensors(fs, path, file),
               ", or another checkpoint's");
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
