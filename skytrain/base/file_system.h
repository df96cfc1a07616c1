// skytrain/base/file_system.h
//
// The seam to the disk. Everything that must survive a crash (checkpoints, run records) goes through it, so that tests
// can cut the power between any two calls: MemoryFileSystem keeps what was made durable apart from what was only
// written, and can fail the n-th call with ENOSPC, EIO or EROFS.
//
// All methods throw Error(kEnvironment) that names the path and the errno text ("No space left on device"), with a
// hint. RealFileSystem is thread-safe (it holds no state). Paths are UTF-8 bytes, '/' separated.

#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/readable_file.h"

namespace skytrain {

struct FileInfo {
  enum class Type { kFile, kDirectory, kOther } type = Type::kFile;
  uint64_t size = 0;
  double modified_unix_seconds = 0;
};

// An open file that is being written from its start. Destroying it without close() leaves a partial file behind.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  void append(std::string_view text) { append(std::as_bytes(std::span(text.data(), text.size()))); }
  virtual void sync() = 0;   // fsync: the bytes are on the disk when it returns
  virtual void close() = 0;  // reports a deferred write error (NFS, quota)
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // nullopt when nothing is there; throws on every other failure (permission, I/O).
  virtual std::optional<FileInfo> stat(const std::string& path) const = 0;
  virtual std::string read_file(const std::string& path) const = 0;
  // Reads exactly `size` bytes from `offset`; throws kData "is N bytes, expected at least M" on a short file.
  virtual void read_range(const std::string& path, uint64_t offset, std::span<std::byte> out) const = 0;
  // For a file of which much is read, at any offset. Unless overridden it is read with the functions above: a file
  // system of tests needs no more. REQUIRES: this file system outlives the result.
  virtual std::unique_ptr<ReadableFile> open_read(const std::string& path) const;
  virtual std::vector<std::string> list(const std::string& directory) const = 0;  // names, sorted, without . and ..

  // kExclusiveDirect: kExclusive for large content: it goes past the page cache where the file system can do that, as
  // long as the bytes given to append() lie at multiples of 4096 and are as many.
  enum class Mode { kTruncate, kAppend, kExclusive, kExclusiveDirect };
  virtual std::unique_ptr<WritableFile> open_write(const std::string& path, Mode mode) = 0;
  virtual void make_directories(const std::string& path) = 0;  // like mkdir -p
  virtual bool make_directory(const std::string& path) = 0;    // false: it exists already
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // A file; false, and nothing changed, when something is called `to` already. Of two callers one alone gets true.
  virtual bool rename_if_absent(const std::string& from, const std::string& to) = 0;
  virtual void remove_file(const std::string& path) = 0;  // no error when absent
  virtual void remove_tree(const std::string& path) = 0;  // no error when absent; does not follow links
  virtual void truncate(const std::string& path, uint64_t size) = 0;
  virtual void sync_directory(const std::string& path) = 0;        // makes names created or renamed in it durable
  virtual uint64_t free_bytes(const std::string& path) const = 0;  // for an unprivileged writer

  bool exists(const std::string& path) const { return stat(path).has_value(); }

  static FileSystem& real();
};

// Writes `path` so that a crash leaves the old content or the new one, never a mixture:
// "<path>.tmp" + fsync + rename + fsync of the folder.
void write_file_atomically(FileSystem& fs, const std::string& path, std::string_view content);
// The same for content that is written piece by piece.
void write_file_atomically(FileSystem& fs, const std::string& path,
                           const std::function<void(WritableFile& file)>& write);

// In memory, for tests. Not thread-safe beyond a coarse lock.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  std::optional<FileInfo> stat(const std::string& path) const override;
  std::string read_file(const std::string& path) const override;
  void read_range(const std::string& path, uint64_t offset, std::span<std::byte> out) const override;
  std::vector<std::string> list(const std::string& directory) const override;
  std::unique_ptr<WritableFile> open_write(const std::string& path, Mode mode) override;
  void make_directories(const std::string& path) override;
  bool make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool rename_if_absent(const std::string& from, const std::string& to) override;
  void remove_file(const std::string& path) override;
  void remove_tree(const std::string& path) override;
  void truncate(const std::string& path, uint64_t size) override;
  void sync_directory(const std::string& path) override;
  uint64_t free_bytes(const std::string& path) const override;

  // Called before every mutating call with its name (open, append, sync, close, mkdir, rename, remove, remove_tree,
  // truncate, sync_directory) and path; a non-zero errno makes the call fail with it. Lets a test fail or "kill" (by
  // throwing its own type) at the n-th call.
  void set_fault(std::function<int(std::string_view call, const std::string& path)> fault);
  // Cuts the power: forgets every byte not synced and every name whose directory was not synced since.
  // Files that were open are dead: their calls fail with EIO.
  void crash();
  // The other way a disk can lose power: every name got there, but no byte that was not synced (what ext4 and XFS do to
  // a file that is renamed without an fsync: it is there, and empty).
  void crash_keeping_names();
  void set_capacity(uint64_t bytes);  // appends beyond fail with ENOSPC

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the open files
};

}  // namespace skytrain
