// Writing and loading a checkpoint. Finding and removing them is in directory.cc.

#include "skytrain/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <utility>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/huge_buffer.h"
#include "skytrain/checkpoint/lineage.h"
#include "skytrain/checkpoint/manifest.h"
#include "skytrain/checkpoint/verify.h"

namespace skytrain::checkpoint {
namespace {

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
constexpr size_t kLeastPiece = size_t{64} << 10, kMostPiece = size_t{4} << 20;
constexpr double kPieceSeconds = 0.1;             // that one write takes at most, about
constexpr size_t kHashChunk = size_t{256} << 10;  // stays in the cache between the two hashes of its bytes
constexpr size_t kLargeImage = size_t{1} << 20;   // that another thread hashes

// Hashes what goes through it, while it is still in the cache.
class HashingFile final : public WritableFile {
 public:
  explicit HashingFile(WritableFile& file) : file_(file) {}
  void append(std::span<const std::byte> bytes) override {
    hash_.update(bytes);
    file_.append(bytes);
  }
  void sync() override { file_.sync(); }
  void close() override { file_.close(); }
  std::string hex() const { return hash_.hex(); }

 private:
  WritableFile& file_;
  Xxh128 hash_;
};

std::string parent_of(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "/";
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

// mkdir -p, durable: a checkpoint in a folder whose own name is lost with the power is lost too.
void make_durable_directories(FileSystem& fs, const std::string& directory) {
  std::vector<std::string> to_sync = {parent_of(directory)};
  while (!fs.exists(to_sync.back()) && to_sync.back() != parent_of(to_sync.back())) {
    to_sync.push_back(parent_of(to_sync.back()));
  }
  const bool existed = fs.exists(directory);
  fs.make_directories(directory);
  try {
    for (auto it = to_sync.rbegin(); it != to_sync.rend(); ++it) fs.sync_directory(*it);
  } catch (const Error&) {
    if (!existed) throw;  // else its name is old, and its parent may be one that we may not open
  }
}

// Writes the one file of replicated state into a folder.
using WriteFile = std::function<Manifest::File(const std::string& folder)>;

Manifest::File write_arrays(FileSystem& fs, const std::string& folder, std::span<const NamedArray> arrays,
                            uint64_t step) {
  Manifest::File entry;
  entry.name = rank_file_name(0, 1);
  const auto file = fs.open_write(folder + "/" + entry.name, FileSystem::Mode::kExclusive);
  HashingFile hashing(*file);
  entry.bytes = write_safetensors(hashing, arrays, {{"format", "pt"}, {"step", std::to_string(step)}});
  entry.xxh128 = hashing.hex();
  hashing.sync();
  hashing.close();
  return entry;
}

// Fills in the hashes of a file and of its tensors, in one pass over the memory.
void hash_image(std::span<const std::byte> image, Manifest::File& entry) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const SafetensorsHeader header = parse_safetensors_header(text, image.size(), entry.name);
  std::map<uint64_t, std::string> begins;  // of tensors; some of no bytes begin where another does
  for (const auto& [name, info] : header.arrays) {
    if (info.end > info.begin) begins[info.begin] = name;
  }
  Xxh128 whole;
  uint64_t at = begins.empty() ? image.size() : begins.begin()->first;
  whole.update(image.first(static_cast<size_t>(at)));
  for (const auto& [begin, name] : begins) {
    Xxh128 own;
    const uint64_t end = header.arrays.at(name).end;
    for (at = begin; at < end; at += kHashChunk) {
      const auto piece = image.subspan(static_cast<size_t>(at), std::min<size_t>(kHashChunk, end - at));
      own.update(piece);
      whole.update(piece);
    }
    entry.tensors[name] = own.hex();
  }
  entry.xxh128 = whole.hex();
}

// Pieces of an image in huge pages, each copied while the one before it is written: the image of a run is a memfd's,
// whose small pages some disks take more slowly.
class CopiesAhead {
 public:
  CopiesAhead(std::span<const std::byte> image, size_t most) : image_(image), most_(most), memory_(2 * most) {}

  // Begins to copy up to `size` bytes from `at`, if there are any. REQUIRES: size <= most.
  void begin(size_t at, size_t size) {
    if (at >= image_.size()) return;
    const std::span<const std::byte> from = image_.subspan(at, std::min(size, image_.size() - at));
    std::byte* const to = memory_.data() + (half_ = most_ - half_);
    next_ = std::async(image_.size() > kLargeImage ? std::launch::async : std::launch::deferred, [from, to] {
      std::memcpy(to, from.data(), from.size());
      return std::span<const std::byte>(to, from.size());
    });
  }
  // What was begun last; valid until begin() was called twice more.
  std::span<const std::byte> take() { return next_.get(); }

 private:
  const std::span<const std::byte> image_;
  const size_t most_;
  const HugeBuffer memory_;
  size_t half_ = 0;
  std::future<std::span<const std::byte>> next_;  // last: its thread uses the others
};

// The manifest's entry is made by `describe`, beside the writing where that is worth a thread.
void write_image(FileSystem& fs, const std::string& path, std::span<const std::byte> image,
                 const std::function<void()>& describe, const WriteHooks& hooks) {
  std::future<void> hashing;
  if (image.size() > kLargeImage) {
    hashing = std::async(std::launch::async, describe);
  } else {
    describe();
  }
  const auto file = fs.open_write(path, FileSystem::Mode::kExclusiveDirect);
  size_t piece = kLeastPiece;
  CopiesAhead copies(image, kMostPiece);
  copies.begin(0, piece);
  for (size_t at = 0; at < image.size();) {
    if (hooks.progress) hooks.progress(at);
    const std::span<const std::byte> bytes = copies.take();
    at += bytes.size();
    copies.begin(at, piece);
    const double begin = Clock::real().monotonic_seconds();
    file->append(bytes);
    const double seconds = Clock::real().monotonic_seconds() - begin;
    if (seconds < kPieceSeconds / 4) piece = std::min(2 * piece, kMostPiece);
    if (seconds > kPieceSeconds) piece = std::max(piece / 2, kLeastPiece);
  }
  if (hooks.progress) hooks.progress(image.size());
  file->sync();
  file->close();
  if (hashing.valid()) hashing.get();
}

void write_manifest(FileSystem& fs, const std::string& folder, const Manifest& manifest) {
  const auto file = fs.open_write(folder + "/" + kManifestName, FileSystem::Mode::kExclusive);
  file->append(std::string_view(format_manifest(manifest)));
  file->sync();
  file->close();
}

std::string commit_file(FileSystem& fs, const std::string& directory, Manifest manifest, const WriteFile& write) {
  const std::string path = directory + "/" + checkpoint_name(manifest.step);
  const std::string temporary = path + kTemporarySuffix;
  manifest.version = kFormatVersion;
  make_durable_directories(fs, directory);

  bool replace = false;
  if (fs.exists(path)) {
    const Verification there = verify(fs, path, Depth::kContent);
    const bool superseded =
        there.verdict == Verdict::kValid &&
        !Lineage::read(fs, directory).objection(there.manifest->generation, there.manifest->step).empty();
    if (there.verdict == Verdict::kValid && there.manifest->step == manifest.step && !superseded) {
      fs.sync_directory(directory);  // whoever committed it may have died before doing this
      return path;
    }
    // Only what is known to be worthless may be replaced.
    if (there.verdict != Verdict::kDamaged && !superseded) {
      const std::string reason =
          there.verdict == Verdict::kValid ? str("it is a good one of step ", there.manifest->step) : there.reason;
      throw Error(there.verdict == Verdict::kUnreadable ? ErrorKind::kEnvironment : ErrorKind::kData, path,
                  "is in the way of a new checkpoint and will not be replaced: " + reason,
                  "move it away, or save elsewhere");
    }
    replace = true;
  }

  try {
    fs.remove_tree(temporary);
    fs.make_directory(temporary);
    manifest.files = {write(temporary)};
    write_manifest(fs, temporary, manifest);
    fs.sync_directory(temporary);
    if (replace) fs.remove_tree(path);
    fs.rename(temporary, path);
    fs.sync_directory(directory);
  } catch (...) {
    try {
      fs.remove_tree(temporary);
    } catch (...) {  // the first trouble is the one to report; prune() sweeps what is left
    }
    throw;
  }
  return path;
}

}  // namespace

std::string commit(FileSystem& fs, const std::string& directory, Manifest manifest,
                   std::span<const NamedArray> arrays) {
  const uint64_t step = manifest.step;
  return commit_file(fs, directory, std::move(manifest),
                     [&](const std::string& folder) { return write_arrays(fs, folder, arrays, step); });
}

Manifest::File describe_image(std::span<const std::byte> file) {
  Manifest::File entry;
  entry.name = rank_file_name(0, 1);
  entry.bytes = file.size();
  hash_image(file, entry);
  return entry;
}

std::string commit_image(FileSystem& fs, const std::string& directory, Manifest manifest,
                         std::span<const std::byte> file, const WriteHooks& hooks) {
  Manifest described = manifest;
  const auto describe = [&] {
    described.files = {describe_image(file)};
    if (hooks.hashed) hooks.hashed(described);
  };
  return commit_file(fs, directory, std::move(manifest), [&](const std::string& folder) {
    write_image(fs, folder + "/" + rank_file_name(0, 1), file, describe, hooks);
    return described.files[0];
  });
}

Manifest read_manifest(const FileSystem& fs, const std::string& checkpoint_path) {
  const std::string path = checkpoint_path + "/" + kManifestName;
  const std::optional<FileInfo> info = fs.stat(path);
  if (!info) {
    const bool folder = fs.exists(checkpoint_path);
    throw Error(ErrorKind::kData, folder ? path : checkpoint_path,
                folder ? "is missing: the checkpoint is incomplete" : "no such checkpoint");
  }
  if (info->type != FileInfo::Type::kFile) throw Error(ErrorKind::kData, path, "is not a file");
  if (info->size > kMaxManifestBytes) {
    throw Error(ErrorKind::kData, path, str("is ", info->size, " bytes, far too large for a manifest"));
  }
  return parse_manifest(fs.read_file(path), path);
}

void amend_state(FileSystem& fs, const std::string& checkpoint_path, Json state) {
  Manifest manifest = read_manifest(fs, checkpoint_path);
  manifest.state = std::move(state);
  write_file_atomically(fs, checkpoint_path + "/" + kManifestName, format_manifest(manifest));
}

std::span<const std::byte> LoadedFile::bytes(const std::string& name) const {
  const ArrayInfo& info = array_of(header_, name, path_);
  return content_.subspan(static_cast<size_t>(info.begin), static_cast<size_t>(info.end - info.begin));
}

LoadedFile load_file(const FileSystem& fs, const std::string& checkpoint_path, const Manifest::File& file) {
  LoadedFile loaded;
  loaded.path_ = checkpoint_path + "/" + file.name;
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::kData, loaded.path_, what); };
  const std::optional<FileInfo> info = fs.stat(loaded.path_);
  if (!info) refuse("is missing: the checkpoint is incomplete");
  if (info->size != file.bytes) refuse(str("is ", info->size, " bytes, manifest says ", file.bytes));
  loaded.file_ = fs.open_read(loaded.path_);
  if (loaded.file_->size() != file.bytes) refuse("was changed while it was read");
  // By reading, not through the map: a disk that fails is an error here, and the map finds the bytes in memory.
  Xxh128 hash;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<uint64_t>(file.bytes, kHashChunk)));
  for (uint64_t at = 0; at < file.bytes; at += chunk.size()) {
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min<uint64_t>(file.bytes - at, chunk.size())));
    loaded.file_->read(at, piece);
    hash.update(piece);
  }
  if (hash.hex() != file.xxh128) {
    refuse("does not match its hash in the manifest: damaged, or another checkpoint's");
  }
  loaded.content_ = loaded.file_->map();
  const std::string_view text(reinterpret_cast<const char*>(loaded.content_.data()), loaded.content_.size());
  loaded.header_ = parse_safetensors_header(text, text.size(), loaded.path_);
  return loaded;
}

}  // namespace skytrain::checkpoint
