#include "skytrain/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

std::string parent_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Fd open_or_throw(const std::string& path, int flags, std::string_view failed) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw errno_error(path, failed, errno);
  return Fd(fd);
}

class RealWritableFile final : public WritableFile {
 public:
  // direct: fd has O_DIRECT. through: without it, each append() waits until the disk has taken the bytes, so that the
  // caller sees how fast it is.
  RealWritableFile(std::string path, Fd fd, bool direct = false, bool through = false)
      : path_(std::move(path)), fd_(std::move(fd)), direct_(direct), through_(through) {}

  void append(std::span<const std::byte> bytes) override {
    if (direct_) {
      const bool begins_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kDirectBlock == 0;
      const size_t aligned = begins_aligned ? bytes.size() / kDirectBlock * kDirectBlock : 0;
      write_all(bytes.first(aligned));
      bytes = bytes.subspan(aligned);
      if (bytes.empty()) return;
      stop_direct();
    }
    write_all(bytes);
    // What is already being written is waited for too; errors come back from sync().
    if (through_) ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }

  void sync() override {
    if (::fsync(fd_.get()) != 0) throw errno_error(path_, "cannot write to the disk (fsync)", errno);
  }

  void close() override {
    // Linux closes the descriptor even when close() fails, so it must not be closed twice.
    if (::close(fd_.release()) != 0 && errno != EINTR) throw errno_error(path_, "cannot write (close)", errno);
  }

 private:
  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0) {
        if (errno == EINTR) continue;
        // Some file systems take O_DIRECT when a file is opened and refuse it here.
        if (errno == EINVAL && direct_) {
          stop_direct();
          continue;
        }
        throw errno_error(path_, "cannot write", errno);
      }
      bytes = bytes.subspan(static_cast<size_t>(n));
      // A short write of a disk that is nearly full leaves the rest at an odd place.
      if (direct_ && static_cast<size_t>(n) % kDirectBlock != 0) stop_direct();
    }
  }

  void stop_direct() {
    direct_ = false;
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) != 0) {
      throw errno_error(path_, "cannot write past O_DIRECT", errno);
    }
  }

  static constexpr size_t kDirectBlock = 4096;

  std::string path_;
  Fd fd_;
  bool direct_, through_;
};

class RealFileSystem final : public FileSystem {
 public:
  std::optional<FileInfo> stat(const std::string& path) const override {
    struct ::stat st {};
    if (::stat(path.c_str(), &st) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      throw errno_error(path, "cannot look at it", errno);
    }
    FileInfo info;
    info.type = S_ISREG(st.st_mode)   ? FileInfo::Type::kFile
                : S_ISDIR(st.st_mode) ? FileInfo::Type::kDirectory
                                      : FileInfo::Type::kOther;
    info.size = static_cast<uint64_t>(st.st_size);
    info.modified_unix_seconds =
        static_cast<double>(st.st_mtim.tv_sec) + 1e-9 * static_cast<double>(st.st_mtim.tv_nsec);
    return info;
  }

  std::string read_file(const std::string& path) const override {
    const Fd fd = open_or_throw(path, O_RDONLY, "cannot open");
    struct ::stat st {};
    std::string out;
    size_t used = 0;
    // One byte more than the size, so that the end of the file is seen without growing the buffer.
    if (::fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode)) out.resize(static_cast<size_t>(st.st_size) + 1);
    while (true) {
      if (used == out.size()) out.resize(std::max<size_t>(4096, out.size() * 2));
      const ssize_t n = ::read(fd.get(), out.data() + used, out.size() - used);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw errno_error(path, "cannot read", errno);
      if (n == 0) break;
      used += static_cast<size_t>(n);
    }
    out.resize(used);
    return out;
  }

  void read_range(const std::string& path, uint64_t offset, std::span<std::byte> out) const override {
    const Fd fd = open_or_throw(path, O_RDONLY, "cannot open");
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw errno_error(path, "cannot read", errno);
      if (n == 0) {
        const auto info = stat(path);
        throw Error(ErrorKind::kData, path,
                    str("is ", info ? info->size : 0, " bytes, expected at least ", offset + out.size()),
                    "the file is cut short: fetch or write it again");
      }
      done += static_cast<size_t>(n);
    }
  }

  std::unique_ptr<ReadableFile> open_read(const std::string& path) const override { return open_real_file(path); }

  std::vector<std::string> list(const std::string& directory) const override {
    DIR* const dir = ::opendir(directory.c_str());
    if (dir == nullptr) throw errno_error(directory, "cannot list", errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> guard(dir, ::closedir);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(dir);
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    if (errno != 0) throw errno_error(directory, "cannot list", errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::unique_ptr<WritableFile> open_write(const std::string& path, Mode mode) override {
    if (mode == Mode::kExclusiveDirect) {
      const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0666);
      if (fd >= 0) return std::make_unique<RealWritableFile>(path, Fd(fd), /*direct=*/true);
      if (errno != EINVAL) throw errno_error(path, "cannot open for writing", errno);
      // This file system has no O_DIRECT. Some have made the file before they said so.
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw errno_error(path, "cannot open for writing", errno);
    }
    const bool through = mode == Mode::kExclusiveDirect;
    const int how = mode == Mode::kTruncate ? O_TRUNC : mode == Mode::kAppend ? O_APPEND : O_EXCL;
    Fd fd = open_or_throw(path, O_WRONLY | O_CREAT | how, "cannot open for writing");
    return std::make_unique<RealWritableFile>(path, std::move(fd), /*direct=*/false, through);
  }

  void make_directories(const std::string& path) override {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    if (code) throw errno_error(path, "cannot make the folder", code.value());
  }

  bool make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
    if (errno == EEXIST) return false;
    throw errno_error(path, "cannot make the folder", errno);
  }

  bool rename_if_absent(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno == EEXIST) return false;
    // Some network file systems know no such rename; a second name for the file does the same.
    if (::link(from.c_str(), to.c_str()) != 0) {
      if (errno == EEXIST) return false;
      throw errno_error(from, "cannot rename to " + to, errno);
    }
    ::unlink(from.c_str());
    return true;
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw errno_error(from, "cannot rename to " + to, errno);
  }

  void remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw errno_error(path, "cannot remove", errno);
  }

  void remove_tree(const std::string& path) override {
    std::error_code code;
    std::filesystem::remove_all(path, code);
    if (code) throw errno_error(path, "cannot remove", code.value());
  }

  void truncate(const std::string& path, uint64_t size) override {
    if (::truncate(path.c_str(), static_cast<off_t>(size)) != 0) throw errno_error(path, "cannot shorten", errno);
  }

  void sync_directory(const std::string& path) override {
    const Fd fd = open_or_throw(path, O_RDONLY | O_DIRECTORY, "cannot open");
    // Some network file systems can't sync a directory and say EINVAL: they do it by themselves on rename.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) throw errno_error(path, "cannot write to the disk (fsync)", errno);
  }

  uint64_t free_bytes(const std::string& path) const override {
    struct statvfs st {};
    if (::statvfs(path.c_str(), &st) != 0) throw errno_error(path, "cannot ask for the free space", errno);
    return static_cast<uint64_t>(st.f_bavail) * st.f_frsize;
  }
};

}  // namespace

FileSystem& FileSystem::real() {
  static RealFileSystem* const fs = new RealFileSystem;
  return *fs;
}

void write_file_atomically(FileSystem& fs, const std::string& path, std::string_view content) {
  write_file_atomically(fs, path, [&](WritableFile& file) { file.append(content); });
}

void write_file_atomically(FileSystem& fs, const std::string& path, const std::function<void(WritableFile&)>& write) {
  const std::string temporary = path + ".tmp";
  try {
    const auto file = fs.open_write(temporary, FileSystem::Mode::kTruncate);
    write(*file);
    file->sync();
    file->close();
    fs.rename(temporary, path);
  } catch (const Error&) {
    try {
      fs.remove_file(temporary);  // a full disk should not stay fuller by our leftovers
    } catch (const Error&) {
      // The first failure is the one to report.
    }
    throw;
  }
  fs.sync_directory(parent_of(path));
}

}  // namespace skytrain
