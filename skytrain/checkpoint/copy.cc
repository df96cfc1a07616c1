#include "skytrain/checkpoint/copy.h"

#include <algorithm>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/lineage.h"
#include "skytrain/checkpoint/manifest.h"
#include "skytrain/checkpoint/verify.h"

namespace skytrain::checkpoint {
namespace {

constexpr size_t kChunk = size_t{4} << 20;

void copy_file(FileSystem& fs, const std::string& from, const std::string& to, const Manifest::File& file,
               const std::function<bool()>& stop) {
  const std::string path = from + "/" + file.name;
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) throw Error(ErrorKind::kData, path, "is missing: the checkpoint is incomplete");
  if (info->size != file.bytes) {
    throw Error(ErrorKind::kData, path, str("is ", info->size, " bytes, manifest says ", file.bytes));
  }
  const auto out = fs.open_write(to + "/" + file.name, FileSystem::Mode::kExclusive);
  Xxh128 hash;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<uint64_t>(file.bytes, kChunk)));
  for (uint64_t at = 0; at < file.bytes; at += chunk.size()) {
    if (stop()) throw Error(ErrorKind::kInterrupted, path, "stopped while it was copied");
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min<uint64_t>(file.bytes - at, chunk.size())));
    fs.read_range(path, at, piece);
    hash.update(piece);
    out->append(piece);
  }
  if (hash.hex() != file.xxh128) {
    throw Error(ErrorKind::kData, path, "does not match its hash in the manifest: damaged, or another checkpoint's");
  }
  out->sync();
  out->close();
}

}  // namespace

std::string copy(FileSystem& fs, const std::string& from, const std::string& directory,
                 const std::function<bool()>& stop) {
  const Manifest manifest = read_manifest(fs, from);
  const std::string path = directory + "/" + checkpoint_name(manifest.step), temporary = path + kTemporarySuffix;
  const std::string text = fs.read_file(from + "/" + kManifestName);
  if (const std::string why = Lineage::read(fs, directory).objection(manifest.generation, manifest.step); !why.empty())
    throw Error(ErrorKind::kData, from, "would not count in " + directory + ": it " + why, "copy it to another folder");
  if (fs.exists(path)) {
    const Verification there = verify(fs, path, Depth::kContent);
    if (there.verdict == Verdict::kValid && fs.read_file(path + "/" + kManifestName) == text) return path;
    throw Error(ErrorKind::kData, path,
                there.verdict == Verdict::kValid ? "is there already, and is another checkpoint of this step"
                                                 : "is there already: " + there.reason,
                "move it away, or copy to another folder");
  }
  fs.make_directories(directory);
  try {
    fs.remove_tree(temporary);
    fs.make_directory(temporary);
    for (const Manifest::File& file : manifest.files) copy_file(fs, from, temporary, file, stop);
    const auto out = fs.open_write(temporary + "/" + kManifestName, FileSystem::Mode::kExclusive);
    out->append(std::string_view(text));
    out->sync();
    out->close();
    fs.sync_directory(temporary);
    fs.rename(temporary, path);
    fs.sync_directory(directory);
  } catch (...) {
    try {
      fs.remove_tree(temporary);
    } catch (const Error&) {  // the first trouble is the one to report
    }
    throw;
  }
  return path;
}

}  // namespace skytrain::checkpoint
