// Copying, committing, verifying and removing. Finding what is complete is in folder_commit.cc.

#include <algorithm>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/commit_manifest.h"
#include "skytrain/launch/folder_commit.h"

namespace skytrain::launch {
namespace {

constexpr size_t kChunk = size_t{4} << 20;
constexpr uint64_t kOverheadBytes = 64 << 10;  // manifest and folders

std::string below(const std::string& root, const std::string& path) { return path.empty() ? root : root + "/" + path; }

// Reads a file in pieces and returns its hash.
template <class Take>
std::string read_hashed(const FileSystem& fs, const std::string& path, uint64_t bytes, Take&& take) {
  Xxh128 hash;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<uint64_t>(bytes, kChunk)));
  for (uint64_t at = 0; at < bytes; at += chunk.size()) {
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min<uint64_t>(bytes - at, chunk.size())));
    fs.read_range(path, at, piece);
    hash.update(piece);
    take(std::span<const std::byte>(piece));
  }
  return hash.hex();
}

}  // namespace

void FolderCommit::commit(const std::string& name, Seen& seen) {
  const std::string temporary = committed_path(name) + kTemporarySuffix;
  const auto clean = [&] {
    try {
      fs_.remove_tree(temporary);
    } catch (const Error&) {  // the first trouble is the one to report; prepare() sweeps what is left
    }
  };
  try {
    if (!copy_and_commit(name, seen, temporary)) clean();
  } catch (const Error&) {
    clean();
    std::optional<Tree> tree;
    try {
      tree = read_tree(name);
    } catch (const Error&) {
    }
    if (tree == seen.tree) throw;
    return;  // the program has changed or removed it meanwhile
  }
}

// false: there was nothing to commit.
bool FolderCommit::copy_and_commit(const std::string& name, Seen& seen, const std::string& temporary) {
  make_room(seen.tree.bytes() + kOverheadBytes);
  fs_.remove_tree(temporary);
  Commit commit = copy(name, seen.tree, temporary);
  if (read_tree(name) != seen.tree) return false;

  for (const Commit& earlier : list()) {
    if (earlier.source != name) continue;
    if (earlier.files == commit.files && earlier.directories == commit.directories) {
      seen.settled = true;  // only its time has changed
      return false;
    }
    break;
  }
  commit.sequence = next_sequence();
  commit.name = free_name(seen, name, commit.sequence);
  commit.committed_unix_seconds = Clock::real().unix_seconds();
  const std::string path = committed_path(commit.name), manifest = path + kManifestSuffix;
  write_file_atomically(fs_, manifest, format_commit(commit));
  try {
    fs_.rename(temporary, path);
    fs_.sync_directory(options_.destination);
  } catch (const Error&) {
    if (!fs_.exists(path)) fs_.remove_file(manifest);
    throw;
  }
  seen.settled = true;
  committed_.push_back(path);
  hooks_.note(str(
      "committed ", path, " (", human_bytes(static_cast<double>(seen.tree.bytes())), ")",
      seen.tree.links.empty() ? "" : "; links and other special files are left out: " + join(seen.tree.links, ", ")));
  prune();
  return true;
}

Commit FolderCommit::copy(const std::string& name, const Tree& tree, const std::string& temporary) {
  Commit commit;
  commit.source = name;
  commit.folder = tree.folder;
  commit.directories = tree.directories;
  if (tree.folder) {
    fs_.make_directory(temporary);
    for (const std::string& directory : tree.directories) fs_.make_directory(below(temporary, directory));
  }
  for (const Tree::Entry& entry : tree.files) {
    commit.files.push_back(copy_file(below(watched(name), entry.path), below(temporary, entry.path), entry));
  }
  if (tree.folder) {
    for (auto it = tree.directories.rbegin(); it != tree.directories.rend(); ++it) {
      fs_.sync_directory(below(temporary, *it));
    }
    fs_.sync_directory(temporary);
  }
  return commit;
}

Commit::File FolderCommit::copy_file(const std::string& from, const std::string& to, const Tree::Entry& entry) {
  const auto out = fs_.open_write(to, FileSystem::Mode::kExclusive);
  Commit::File file{entry.path, entry.bytes, ""};
  file.xxh128 = read_hashed(fs_, from, entry.bytes, [&](std::span<const std::byte> piece) {
    if (hooks_.stop()) throw Error(ErrorKind::kAborted, from, "stopped while it was copied");
    out->append(piece);
  });
  out->sync();
  out->close();
  return file;
}

std::string FolderCommit::free_name(const Seen& seen, const std::string& name, uint64_t sequence) const {
  const auto is_free = [this](const std::string& candidate) {
    const std::string path = committed_path(candidate);
    return !fs_.exists(path) && !fs_.exists(path + kManifestSuffix);
  };
  const size_t dot = seen.tree.folder ? std::string::npos : name.rfind('.');
  const std::string stem = name.substr(0, dot), ending = dot == std::string::npos ? "" : name.substr(dot);
  std::string candidate = name;
  for (uint64_t n = sequence; !is_free(candidate); ++n) candidate = str(stem, ".v", n, ending);
  return candidate;
}

uint64_t FolderCommit::next_sequence() const {
  const std::vector<Commit> commits = list();
  return commits.empty() ? 1 : commits.front().sequence + 1;
}

std::vector<Commit> FolderCommit::list() const {
  const std::string suffix = kManifestSuffix;
  std::vector<Commit> commits;
  for (const std::string& name : fs_.list(options_.destination)) {
    if (name.size() <= suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    const std::string path = committed_path(name);
    try {
      Commit commit = parse_commit(fs_.read_file(path), path);
      if (commit.name + suffix == name && fs_.exists(committed_path(commit.name))) commits.push_back(std::move(commit));
    } catch (const Error&) {  // it vouches for nothing; newest_valid() tells
    }
  }
  std::sort(commits.begin(), commits.end(), [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  return commits;
}

std::optional<std::string> FolderCommit::newest_valid() {
  for (const Commit& commit : list()) {
    const std::string path = committed_path(commit.name), reason = why_damaged(commit);
    if (reason.empty()) return path;
    hooks_.note(str("warning: ", path, " is passed over: ", reason));
  }
  return std::nullopt;
}

std::string FolderCommit::why_damaged(const Commit& commit) const {
  for (const Commit::File& file : commit.files) {
    const std::string path = below(committed_path(commit.name), file.path);
    try {
      const std::optional<FileInfo> info = fs_.stat(path);
      if (!info) return path + " is missing";
      if (hooks_.is_link(path) || info->type != FileInfo::Type::kFile) return path + " is no file";
      if (info->size != file.bytes) return str(path, " is ", info->size, " bytes, its manifest says ", file.bytes);
      const std::string hash = read_hashed(fs_, path, file.bytes, [&](std::span<const std::byte>) {
        if (hooks_.stop()) throw Error(ErrorKind::kAborted, path, "stopped while it was read");
      });
      if (hash != file.xxh128) return path + " does not match its hash";
    } catch (const Error& error) {
      return error.message();
    }
  }
  return "";
}

// Older commits give way to a new one, never the last good one.
void FolderCommit::make_room(uint64_t bytes) {
  if (fs_.free_bytes(options_.destination) >= bytes) return;
  std::vector<Commit> commits = list();
  if (commits.size() < 2 || !why_damaged(commits.front()).empty()) return;
  while (commits.size() > 1 && fs_.free_bytes(options_.destination) < bytes) {
    remove(commits.back());
    hooks_.note(str(options_.destination, " is full: removed ", commits.back().name, " for a newer one"));
    commits.pop_back();
  }
}

// REQUIRES: the newest commit has just been made.
void FolderCommit::prune() {
  const std::vector<Commit> commits = list();
  for (size_t i = static_cast<size_t>(options_.keep); i < commits.size(); ++i) {
    try {
      remove(commits[i]);
    } catch (const Error& error) {  // what is committed is committed
      hooks_.note("warning: an older commit could not be removed: " + error.message());
    }
  }
}

// At every moment it is a commit or what prepare() sweeps.
void FolderCommit::remove(const Commit& commit) {
  const std::string path = committed_path(commit.name), temporary = path + kTemporarySuffix;
  fs_.remove_tree(temporary);
  fs_.rename(path, temporary);
  fs_.sync_directory(options_.destination);
  fs_.remove_file(path + kManifestSuffix);
  fs_.remove_tree(temporary);
}

}  // namespace skytrain::launch
