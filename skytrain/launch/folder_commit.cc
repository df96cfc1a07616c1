// Finding what is complete. Copying, committing and removing is in folder_commit_store.cc.

#include "skytrain/launch/folder_commit.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A name by which programs say that they are not done.
bool says_unfinished(const std::string& name) { return ends_with(name, ".tmp") || ends_with(name, ".part"); }

std::string parent_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.rfind(folder == "/" ? folder : folder + "/", 0) == 0;
}

// mkdir -p, durable.
void make_durable(FileSystem& fs, const std::string& directory) {
  std::vector<std::string> parents;
  for (std::string at = directory; !fs.exists(at) && at != parent_of(at); at = parent_of(at)) {
    parents.push_back(parent_of(at));
  }
  fs.make_directories(directory);
  for (auto it = parents.rbegin(); it != parents.rend(); ++it) fs.sync_directory(*it);
}

}  // namespace

double FolderCommit::Tree::newest() const {
  double newest = 0;
  for (const Entry& file : files) newest = std::max(newest, file.modified);
  return newest;
}

uint64_t FolderCommit::Tree::bytes() const {
  uint64_t bytes = 0;
  for (const Entry& file : files) bytes += file.bytes;
  return bytes;
}

FolderCommit::FolderCommit(FileSystem& fs, CommitOptions options, CommitHooks hooks)
    : fs_(fs), options_(std::move(options)), hooks_(std::move(hooks)) {}

void FolderCommit::prepare() {
  if (lies_in(options_.watch, options_.destination) || lies_in(options_.destination, options_.watch)) {
    throw Error(ErrorKind::kUsage, "--commit-to",
                str(options_.destination, " and --watch ", options_.watch, " lie in one another"),
                "give two folders of their own");
  }
  make_durable(fs_, options_.watch);
  make_durable(fs_, options_.destination);
  const std::string manifest = kManifestSuffix;
  for (const std::string& name : fs_.list(options_.destination)) {
    const std::string path = committed_path(name);
    if (ends_with(name, kTemporarySuffix) || ends_with(name, manifest + ".tmp")) {
      fs_.remove_tree(path);
    } else if (ends_with(name, manifest) && !fs_.exists(path.substr(0, path.size() - manifest.size()))) {
      fs_.remove_file(path);
    }
  }
}

void FolderCommit::pass_over_what_is_there() {
  look(0);
  for (auto& [name, seen] : seen_) seen.settled = true;
}

void FolderCommit::poll(double seconds) {
  try {
    look(seconds);
  } catch (const Error& error) {
    hooks_.note("warning: " + error.message());
    return;
  }
  std::optional<std::vector<std::string>> open;
  for (const std::string& name : candidates()) {
    Seen& seen = seen_.at(name);
    if (!open) open = hooks_.open_for_writing();
    const std::string path = watched(name);
    if (std::any_of(open->begin(), open->end(), [&](const std::string& file) { return lies_in(file, path); })) {
      seen.since = seconds;
    }
    if (seconds - seen.since < options_.quiet_seconds || seconds < seen.retry_at) continue;
    try {
      commit(name, seen);
    } catch (const Error& error) {
      seen.retry_at = seconds + kRetrySeconds;
      if (seen.told || hooks_.stop()) continue;
      seen.told = true;
      hooks_.note(str("warning: ", name, " could not be committed and will be tried again: ", error.message()));
    }
  }
}

void FolderCommit::flush(double seconds) {
  look(seconds);
  std::optional<Error> first;
  for (const std::string& name : candidates()) {
    try {
      commit(name, seen_.at(name));
    } catch (const Error& error) {
      if (!first) first = error;
    }
  }
  if (first) throw *first;
}

void FolderCommit::look(double seconds) {
  std::map<std::string, Seen> now;
  for (const std::string& name : fs_.list(options_.watch)) {
    if (name.front() == '.' || says_unfinished(name) || ends_with(name, kManifestSuffix)) continue;
    if (hooks_.is_link(watched(name))) continue;
    std::optional<Tree> tree;
    try {
      tree = read_tree(name);
    } catch (const Error&) {  // it is changing
    }
    if (!tree) continue;
    const auto before = seen_.find(name);
    if (before != seen_.end() && before->second.tree == *tree) {
      now[name] = before->second;
    } else {
      now[name].tree = *std::move(tree);
      now[name].since = seconds;
    }
  }
  seen_ = std::move(now);
}

std::optional<FolderCommit::Tree> FolderCommit::read_tree(const std::string& name) const {
  const std::optional<FileInfo> info = fs_.stat(watched(name));
  Tree tree;
  if (!info || info->type == FileInfo::Type::kOther) return std::nullopt;
  if (invalid_utf8_at(name) != std::string::npos) return std::nullopt;  // no manifest could name it
  tree.folder = info->type == FileInfo::Type::kDirectory;
  if (tree.folder) {
    read_into(tree, watched(name), "");
  } else {
    tree.files.push_back({"", info->size, info->modified_unix_seconds});
  }
  // Empty: made, but not written yet.
  if (tree.bytes() == 0) return std::nullopt;
  return tree;
}

void FolderCommit::read_into(Tree& tree, const std::string& path, const std::string& relative) const {
  for (const std::string& name : fs_.list(path)) {
    const std::string below = relative.empty() ? name : str(relative, "/", name);
    const std::string full = str(path, "/", name);
    tree.unfinished = tree.unfinished || says_unfinished(name);
    const bool link = hooks_.is_link(full) || invalid_utf8_at(name) != std::string::npos;
    const std::optional<FileInfo> info = link ? std::nullopt : fs_.stat(full);
    if (link || (info && info->type == FileInfo::Type::kOther)) {
      tree.links.push_back(below);
    } else if (info && info->type == FileInfo::Type::kDirectory) {
      tree.directories.push_back(below);
      read_into(tree, full, below);
    } else if (info) {
      tree.files.push_back({below, info->size, info->modified_unix_seconds});
    }
  }
}

std::vector<std::string> FolderCommit::candidates() const {
  std::vector<std::string> names;
  for (const auto& [name, seen] : seen_) {
    if (!seen.settled && !seen.tree.unfinished) names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(), [this](const std::string& a, const std::string& b) {
    return seen_.at(a).tree.newest() < seen_.at(b).tree.newest();
  });
  return names;
}

}  // namespace skytrain::launch
