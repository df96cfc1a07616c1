// lock_run(): flock(2) on <run>/lock. Apart from run_directory.cc because it is the part that only a real disk has.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::record {

namespace {

constexpr double kPollSeconds = 0.05;

// The process that took the lock, as /proc/locks tells ("1: FLOCK  ADVISORY  WRITE 4711 08:01:5242 0 EOF"); 0 when it
// does not: another machine, or another container.
int holder_of(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return 0;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    int pid = 0;
    unsigned major_id = 0, minor_id = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%*s FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_id, &minor_id, &inode) != 4) continue;
    if (inode == info.st_ino && makedev(major_id, minor_id) == info.st_dev) return std::max(pid, 0);
  }
  return 0;
}

[[noreturn]] void throw_errno(const std::string& path, const std::string& what, int code) {
  throw Error(ErrorKind::kEnvironment, path, what + ": " + std::strerror(code),
              "the folder of runs must be writable and on a file system with flock(2); choose another with --runs");
}

Fd open_lock(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) throw_errno(path, "can't open the lock", errno);
  return fd;
}

// False while another process holds it.
bool take(const Fd& fd, const std::string& path) {
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw_errno(path, "can't lock the run", errno);
  }
  return true;
}

std::string in_use_by(const Fd& fd) {
  const int pid = holder_of(fd.get());
  return pid > 0 ? str("is in use by process ", pid) : "is in use by another process";
}

}  // namespace

std::optional<Fd> try_lock_run(const RunDirectory& run, std::string* in_use) {
  Fd fd = open_lock(run.lock());
  if (take(fd, run.lock())) return fd;
  if (in_use != nullptr) *in_use = in_use_by(fd);
  return std::nullopt;
}

Fd lock_run(const RunDirectory& run, double wait_seconds, Clock& clock) {
  Fd fd = open_lock(run.lock());
  const double deadline = clock.monotonic_seconds() + wait_seconds;
  while (!take(fd, run.lock())) {
    const double left = deadline - clock.monotonic_seconds();
    if (left <= 0) {
      throw Error(ErrorKind::kEnvironment, run.path(), in_use_by(fd), "wait for it, stop it, or start a new run");
    }
    clock.sleep_seconds(std::min(kPollSeconds, left));
  }
  return fd;
}

}  // namespace skytrain::record
