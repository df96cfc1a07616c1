#include "skytrain/base/process_tree.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

struct Stat {
  std::string name;
  char state = 0;  // 0: there is no such process
  pid_t parent = 0;
};

Stat stat_of(pid_t pid) {
  std::ifstream file(str("/proc/", pid, "/stat"));
  std::string line;
  Stat stat;
  if (!std::getline(file, line)) return stat;
  const size_t open = line.find('('), close = line.rfind(')');  // the name may hold parentheses itself
  if (open == std::string::npos || close == std::string::npos || close < open) return stat;
  stat.name = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  rest >> stat.state >> stat.parent;
  return stat;
}

// Numbers that name the entries of a folder of /proc.
std::vector<pid_t> numbers_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()),
                                                [](DIR* d) { return d ? ::closedir(d) : 0; });
  std::vector<pid_t> numbers;
  while (dir) {
    const dirent* const entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    pid_t number = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, code] = std::from_chars(entry->d_name, end, number);
    if (code == std::errc() && stop == end) numbers.push_back(number);
  }
  return numbers;
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_parent(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : numbers_in("/proc")) {
    if (stat_of(pid).parent == parent) children.push_back(pid);
  }
  return children;
}

// The number may belong to someone else by now: what is signalled is the process that still descends from us.
bool kill_if_child_of(pid_t pid, pid_t parent) {
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return false;
  const Stat stat = stat_of(pid);
  // Its parent may have ended in between and left it to us.
  if (stat.state == 0 || stat.state == 'Z' || (stat.parent != parent && stat.parent != ::getpid())) return false;
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) == 0;
}

}  // namespace

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    throw errno_error("prctl", "cannot become the parent of orphans (PR_SET_CHILD_SUBREAPER)", errno);
  }
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t thread : numbers_in(str("/proc/", pid, "/task"))) {
    std::ifstream file(str("/proc/", pid, "/task/", thread, "/children"));
    if (!file) {
      if (stat_of(pid).state == 0 || stat_of(thread).state == 0) continue;  // it ended meanwhile
      return children_by_parent(pid);
    }
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> all = children_of(pid);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const pid_t child : children_of(all[i])) {
      if (std::find(all.begin(), all.end(), child) == all.end()) all.push_back(child);
    }
  }
  return all;
}

bool is_zombie(pid_t pid) { return stat_of(pid).state == 'Z'; }
std::string name_of(pid_t pid) { return stat_of(pid).name; }

void reap_child(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::vector<pid_t> ended_children() {
  std::vector<pid_t> ended;
  for (const pid_t child : children_of(::getpid())) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child) {
      ended.push_back(child);
    }
  }
  return ended;
}

Killed kill_descendants(double seconds, const std::function<void(pid_t)>& reap, const std::vector<pid_t>& spared) {
  const double deadline = Clock::real().monotonic_seconds() + seconds;
  const auto is_spared = [&](pid_t pid) { return std::find(spared.begin(), spared.end(), pid) != spared.end(); };
  Killed killed;
  std::set<pid_t> signalled;
  for (double pause = 0.0005;; pause = std::min(2 * pause, 0.02)) {
    killed.left.clear();
    std::vector<std::pair<pid_t, pid_t>> level;  // a process and its parent
    for (const pid_t child : children_of(::getpid())) {
      if (!is_spared(child)) level.emplace_back(child, ::getpid());
    }
    for (size_t i = 0; i < level.size(); ++i) {
      const auto [pid, parent] = level[i];
      for (const pid_t child : children_of(pid)) level.emplace_back(child, pid);
      const std::string name = name_of(pid);
      if (kill_if_child_of(pid, parent) && signalled.insert(pid).second) killed.names.push_back(name);
      killed.left.push_back(pid);
    }
    for (const pid_t child : ended_children()) {
      if (!is_spared(child)) reap(child);
    }
    if (killed.left.empty() || Clock::real().monotonic_seconds() >= deadline) return killed;
    Clock::real().sleep_seconds(pause);
  }
}

}  // namespace skytrain
