#include "skytrain/base/readable_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

[[noreturn]] void refuse_short(const std::string& path, uint64_t is, uint64_t expected) {
  throw Error(ErrorKind::kData, path, str("is ", is, " bytes, expected at least ", expected),
              "the file is cut short: fetch or write it again");
}

class RealReadableFile final : public ReadableFile {
 public:
  explicit RealReadableFile(const std::string& path) : path_(path), file_(open(O_RDONLY)) {
    if (!file_) throw errno_error(path_, "cannot open", errno);
    struct ::stat st {};
    if (::fstat(file_.get(), &st) != 0) throw errno_error(path_, "cannot look at it", errno);
    if (S_ISDIR(st.st_mode)) throw errno_error(path_, "cannot open", EISDIR);
    size_ = static_cast<uint64_t>(st.st_size);
    direct_ = open(O_RDONLY | O_DIRECT);  // not every file system has it
    if (size_ == 0) return;
    void* const mapped = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_PRIVATE, file_.get(), 0);
    if (mapped != MAP_FAILED) mapped_ = static_cast<const std::byte*>(mapped);
  }

  ~RealReadableFile() override {
    if (mapped_ != nullptr) ::munmap(const_cast<std::byte*>(mapped_), static_cast<size_t>(size_));
  }

  uint64_t size() const override { return size_; }

  void read(uint64_t offset, std::span<std::byte> out) const override {
    const size_t done = read_up_to(file_.get(), offset, out);
    if (done < out.size()) refuse_short(path_, offset + done, offset + out.size());
  }

  size_t read_direct(uint64_t offset, std::span<std::byte> out) const override {
    size_t done = 0;
    while (direct_ && done < out.size() && done % kDirectBlock == 0) {
      const ssize_t n = ::pread(direct_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EINVAL) break;  // some take O_DIRECT when a file is opened and refuse it here
      if (n < 0) throw errno_error(path_, "cannot read", errno);
      if (n == 0) return done;
      done += static_cast<size_t>(n);
    }
    return done + read_up_to(file_.get(), offset + done, out.subspan(done));
  }

  // mincore() tells without starting a read, which preadv2(RWF_NOWAIT) does.
  bool is_in_memory(uint64_t offset, uint64_t bytes) const override {
    static const auto kPage = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    if (bytes == 0) return true;
    if (mapped_ == nullptr || offset >= size_) return false;
    const uint64_t begin = offset / kPage * kPage, end = std::min(size_, offset + bytes);
    std::vector<unsigned char> pages(static_cast<size_t>((end - begin + kPage - 1) / kPage));
    if (::mincore(const_cast<std::byte*>(mapped_ + begin), static_cast<size_t>(end - begin), pages.data()) != 0) {
      return false;
    }
    return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  }

  std::span<const std::byte> map() const override {
    if (mapped_ == nullptr && size_ > 0) throw errno_error(path_, "cannot map into memory", ENODEV);
    return {mapped_, static_cast<size_t>(size_)};
  }

 private:
  Fd open(int flags) const {
    int fd;
    do {
      fd = ::open(path_.c_str(), flags | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return Fd(fd);
  }

  size_t read_up_to(int fd, uint64_t offset, std::span<std::byte> out) const {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw errno_error(path_, "cannot read", errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  std::string path_;
  Fd file_, direct_;
  uint64_t size_ = 0;
  const std::byte* mapped_ = nullptr;
};

// A file of a FileSystem that has nothing better than read_range().
class PlainReadableFile final : public ReadableFile {
 public:
  PlainReadableFile(const FileSystem& fs, const std::string& path) : fs_(fs), path_(path) {
    const auto info = fs.stat(path);
    if (!info) throw errno_error(path, "cannot open", ENOENT);
    size_ = info->size;
  }
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, std::span<std::byte> out) const override { fs_.read_range(path_, offset, out); }
  size_t read_direct(uint64_t offset, std::span<std::byte> out) const override {
    const auto there = static_cast<size_t>(std::min<uint64_t>(out.size(), size_ > offset ? size_ - offset : 0));
    if (there > 0) fs_.read_range(path_, offset, out.first(there));
    return there;
  }
  bool is_in_memory(uint64_t, uint64_t) const override { return false; }
  std::span<const std::byte> map() const override {
    const std::lock_guard lock(mutex_);
    if (content_.empty()) content_ = fs_.read_file(path_);
    return std::as_bytes(std::span(content_));
  }

 private:
  const FileSystem& fs_;
  const std::string path_;
  uint64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable std::string content_;
};

}  // namespace

std::unique_ptr<ReadableFile> open_real_file(const std::string& path) {
  return std::make_unique<RealReadableFile>(path);
}

std::unique_ptr<ReadableFile> FileSystem::open_read(const std::string& path) const {
  return std::make_unique<PlainReadableFile>(*this, path);
}

}  // namespace skytrain
