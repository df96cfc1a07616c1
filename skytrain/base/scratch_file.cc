#include "skytrain/base/scratch_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

Fd open_unnamed(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) return fd;
  // A file system without O_TMPFILE (NFS): its name is taken away at once.
  std::string name = folder + "/.skytrain-scratch-XXXXXX";
  fd = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (fd) ::unlink(name.c_str());
  return fd;
}

}  // namespace

ScratchFile::ScratchFile(const std::vector<std::string>& folders, uint64_t bytes) {
  std::optional<Error> failure;
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    fd_ = open_unnamed(folder);
    if (!fd_) {
      failure = errno_error(folder, "cannot make a file for what is unpacked", errno);
      continue;
    }
    struct statvfs st {};
    if (::fstatvfs(fd_.get(), &st) != 0 || static_cast<uint64_t>(st.f_bavail) * st.f_frsize >= bytes) {
      folder_ = folder;
      return;
    }
    const uint64_t free = static_cast<uint64_t>(st.f_bavail) * st.f_frsize;
    failure = Error(ErrorKind::kEnvironment, folder,
                    str("has ", human_bytes(static_cast<double>(free)), " free, ",
                        human_bytes(static_cast<double>(bytes)), " are needed to unpack the data set"),
                    "let TMPDIR name a folder with more room");
  }
  if (!failure) throw Error(ErrorKind::kInternal, "ScratchFile", "was given no folder");
  throw *failure;
}

void ScratchFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw errno_error(folder_, "cannot write what is unpacked", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

void ScratchFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw errno_error(folder_, "cannot read what was unpacked", errno);
    if (n == 0) throw Error(ErrorKind::kInternal, "ScratchFile", "was read where nothing was written");
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace skytrain
