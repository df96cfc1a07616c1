// The fake disk of tests. A file is an inode with its bytes and the bytes that an fsync made durable; a directory is an
// inode with its names and the names that a sync_directory made durable. A crash goes back to what is durable.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

struct Inode {
  bool directory = false;
  std::string bytes, durable_bytes;
  std::map<std::string, std::shared_ptr<Inode>> names, durable_names;
};
using InodePtr = std::shared_ptr<Inode>;

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    begin = end + 1;
  }
  return parts;
}

uint64_t total_bytes(const Inode& inode) {
  uint64_t total = inode.bytes.size();
  for (const auto& [name, child] : inode.names) total += total_bytes(*child);
  return total;
}

void cut_power(Inode& inode, bool keep_names) {
  inode.bytes = inode.durable_bytes;
  if (keep_names) {
    inode.durable_names = inode.names;
  } else {
    inode.names = inode.durable_names;
  }
  for (const auto& [name, child] : inode.names) cut_power(*child, keep_names);
}

}  // namespace

struct MemoryFileSystem::Impl : std::enable_shared_from_this<MemoryFileSystem::Impl> {
  mutable std::mutex mutex;
  InodePtr root = std::make_shared<Inode>(Inode{.directory = true});
  std::function<int(std::string_view, const std::string&)> fault;
  uint64_t capacity = ~uint64_t{0};
  uint64_t boots = 0;  // files opened before a crash are dead after it

  // Without the lock: the test's function may look at the file system.
  void before(std::string_view call, const std::string& path) const {
    if (!fault) return;
    if (const int errnum = fault(call, path); errnum != 0) throw errno_error(path, str("cannot ", call), errnum);
  }

  // REQUIRES for all below: mutex is held.
  InodePtr find(const std::string& path) const {
    InodePtr at = root;
    for (const std::string& part : split(path)) {
      const auto it = at->names.find(part);
      if (it == at->names.end()) return nullptr;
      at = it->second;
    }
    return at;
  }

  InodePtr need(const std::string& path, std::string_view failed, bool directory) const {
    InodePtr inode = find(path);
    if (inode == nullptr) throw errno_error(path, failed, ENOENT);
    if (inode->directory != directory) throw errno_error(path, failed, directory ? ENOTDIR : EISDIR);
    return inode;
  }

  // The directory that holds (or would hold) the last name of `path`.
  std::pair<InodePtr, std::string> parent(const std::string& path, std::string_view failed) const {
    std::vector<std::string> parts = split(path);
    if (parts.empty()) throw errno_error(path, failed, EBUSY);
    const std::string name = parts.back();
    parts.pop_back();
    return {need("/" + join(parts, "/"), failed, true), name};
  }
};

namespace {

template <class Impl>
class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<Impl> fs, InodePtr inode, std::string path, bool append)
      : fs_(std::move(fs)), inode_(std::move(inode)), path_(std::move(path)), append_(append), boot_(fs_->boots) {}

  void append(std::span<const std::byte> bytes) override {
    fs_->before("append", path_);
    const std::lock_guard lock(fs_->mutex);
    check_alive();
    const uint64_t used = total_bytes(*fs_->root);
    const uint64_t room = fs_->capacity > used ? fs_->capacity - used : 0;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(room, bytes.size()));  // a disk fills in mid-write
    if (append_) position_ = inode_->bytes.size();
    if (inode_->bytes.size() < position_ + count) inode_->bytes.resize(position_ + count);
    if (count > 0) std::memcpy(inode_->bytes.data() + position_, bytes.data(), count);
    position_ += count;
    if (count < bytes.size()) throw errno_error(path_, "cannot write", ENOSPC);
  }

  void sync() override {
    fs_->before("sync", path_);
    const std::lock_guard lock(fs_->mutex);
    check_alive();
    inode_->durable_bytes = inode_->bytes;
  }

  void close() override {
    fs_->before("close", path_);
    const std::lock_guard lock(fs_->mutex);
    check_alive();
  }

 private:
  void check_alive() const {
    if (boot_ != fs_->boots) throw errno_error(path_, "the power was cut while the file was open", EIO);
  }

  std::shared_ptr<Impl> fs_;
  InodePtr inode_;
  std::string path_;
  bool append_;
  uint64_t boot_;
  size_t position_ = 0;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() : impl_(std::make_shared<Impl>()) {}
MemoryFileSystem::~MemoryFileSystem() = default;

std::optional<FileInfo> MemoryFileSystem::stat(const std::string& path) const {
  const std::lock_guard lock(impl_->mutex);
  const InodePtr inode = impl_->find(path);
  if (inode == nullptr) return std::nullopt;
  return FileInfo{inode->directory ? FileInfo::Type::kDirectory : FileInfo::Type::kFile, inode->bytes.size(), 0};
}

std::string MemoryFileSystem::read_file(const std::string& path) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->need(path, "cannot open", false)->bytes;
}

void MemoryFileSystem::read_range(const std::string& path, uint64_t offset, std::span<std::byte> out) const {
  const std::lock_guard lock(impl_->mutex);
  const std::string& bytes = impl_->need(path, "cannot open", false)->bytes;
  if (offset > bytes.size() || out.size() > bytes.size() - offset) {
    throw Error(ErrorKind::kData, path, str("is ", bytes.size(), " bytes, expected at least ", offset + out.size()),
                "the file is cut short: fetch or write it again");
  }
  if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
}

std::vector<std::string> MemoryFileSystem::list(const std::string& directory) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, inode] : impl_->need(directory, "cannot list", true)->names) names.push_back(name);
  return names;
}

std::unique_ptr<WritableFile> MemoryFileSystem::open_write(const std::string& path, Mode mode) {
  impl_->before("open", path);
  const std::lock_guard lock(impl_->mutex);
  const auto [directory, name] = impl_->parent(path, "cannot open for writing");
  InodePtr& inode = directory->names[name];
  if (inode == nullptr) {
    inode = std::make_shared<Inode>();
  } else if (inode->directory) {
    throw errno_error(path, "cannot open for writing", EISDIR);
  } else if (mode == Mode::kExclusive || mode == Mode::kExclusiveDirect) {
    throw errno_error(path, "cannot open for writing", EEXIST);
  }
  if (mode == Mode::kTruncate) inode->bytes.clear();
  return std::make_unique<MemoryWritableFile<Impl>>(impl_, inode, path, mode == Mode::kAppend);
}

void MemoryFileSystem::make_directories(const std::string& path) {
  impl_->before("mkdir", path);
  const std::lock_guard lock(impl_->mutex);
  InodePtr at = impl_->root;
  for (const std::string& part : split(path)) {
    InodePtr& next = at->names[part];
    if (next == nullptr) next = std::make_shared<Inode>(Inode{.directory = true});
    if (!next->directory) throw errno_error(path, "cannot make the folder", ENOTDIR);
    at = next;
  }
}

bool MemoryFileSystem::make_directory(const std::string& path) {
  impl_->before("mkdir", path);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->find(path) != nullptr) return false;
  const auto [directory, name] = impl_->parent(path, "cannot make the folder");
  directory->names[name] = std::make_shared<Inode>(Inode{.directory = true});
  return true;
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  impl_->before("rename", from);
  const std::lock_guard lock(impl_->mutex);
  const std::string failed = "cannot rename to " + to;
  const auto [source, source_name] = impl_->parent(from, failed);
  const auto [target, target_name] = impl_->parent(to, failed);
  const auto it = source->names.find(source_name);
  if (it == source->names.end()) throw errno_error(from, failed, ENOENT);
  const InodePtr moved = it->second;
  if (const auto old = target->names.find(target_name); old != target->names.end() && old->second != moved) {
    if (old->second->directory && !moved->directory) throw errno_error(from, failed, EISDIR);
    if (!old->second->directory && moved->directory) throw errno_error(from, failed, ENOTDIR);
    if (old->second->directory && !old->second->names.empty()) throw errno_error(from, failed, ENOTEMPTY);
  }
  source->names.erase(it);
  target->names[target_name] = moved;
}

bool MemoryFileSystem::rename_if_absent(const std::string& from, const std::string& to) {
  if (exists(to)) return false;
  rename(from, to);
  return true;
}

void MemoryFileSystem::remove_file(const std::string& path) {
  impl_->before("remove", path);
  const std::lock_guard lock(impl_->mutex);
  const InodePtr inode = impl_->find(path);
  if (inode == nullptr) return;
  if (inode->directory) throw errno_error(path, "cannot remove", EISDIR);
  const auto [directory, name] = impl_->parent(path, "cannot remove");
  directory->names.erase(name);
}

void MemoryFileSystem::remove_tree(const std::string& path) {
  impl_->before("remove_tree", path);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->find(path) == nullptr) return;
  const auto [directory, name] = impl_->parent(path, "cannot remove");
  directory->names.erase(name);
}

void MemoryFileSystem::truncate(const std::string& path, uint64_t size) {
  impl_->before("truncate", path);
  const std::lock_guard lock(impl_->mutex);
  impl_->need(path, "cannot shorten", false)->bytes.resize(static_cast<size_t>(size));
}

void MemoryFileSystem::sync_directory(const std::string& path) {
  impl_->before("sync_directory", path);
  const std::lock_guard lock(impl_->mutex);
  const InodePtr inode = impl_->need(path, "cannot open", true);
  inode->durable_names = inode->names;
}

uint64_t MemoryFileSystem::free_bytes(const std::string& path) const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->find(path) == nullptr) throw errno_error(path, "cannot ask for the free space", ENOENT);
  const uint64_t used = total_bytes(*impl_->root);
  return impl_->capacity > used ? impl_->capacity - used : 0;
}

void MemoryFileSystem::set_fault(std::function<int(std::string_view, const std::string&)> fault) {
  impl_->fault = std::move(fault);
}

void MemoryFileSystem::crash() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->boots;
  cut_power(*impl_->root, /*keep_names=*/false);
}

void MemoryFileSystem::crash_keeping_names() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->boots;
  cut_power(*impl_->root, /*keep_names=*/true);
}

void MemoryFileSystem::set_capacity(uint64_t bytes) {
  const std::lock_guard lock(impl_->mutex);
  impl_->capacity = bytes;
}

}  // namespace skytrain
