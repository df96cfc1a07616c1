#include "skytrain/launch/rank_shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/base/process_tree.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

// That what a command leaves behind has to end by itself: multiprocessing's resource tracker removes shared memory
// then.
constexpr double kLeaveSeconds = 1;
constexpr double kKillSeconds = 10;  // that SIGKILL takes at most, unless the kernel is stuck

double now() { return Clock::real().monotonic_seconds(); }

void set_text(ShimReport& report, const std::string& text) {
  const size_t n = std::min(text.size(), sizeof report.text - 1);
  std::memcpy(report.text, text.data(), n);
}

class Shim {
 public:
  int run(const std::vector<std::string>& words) {
    block_signals();
    become_subreaper();
    if (!start(words)) return 127;
    while (!ended_ && !told_to_kill_) {
      wait_for_something(-1);
      reap();
    }
    if (!told_to_kill_) wait_for_leftovers();
    clean();
    return 0;
  }

 private:
  void block_signals() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    children_ = Fd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!children_) throw errno_error("signalfd", "cannot watch children", errno);
  }

  bool start(const std::vector<std::string>& words) {
    ChildProcess::Options options;
    options.program = words.at(0);
    options.argv.assign(words.begin() + 1, words.end());
    options.fds = {{0, 0}};
    options.new_process_group = true;
    options.parent_death_signal = SIGKILL;  // should someone kill the shim
    ShimReport report;
    try {
      command_.emplace(ChildProcess::spawn(options));
    } catch (const Error& error) {
      report.what = ShimReport::What::kNotStarted;
      set_text(report, error.problem());
      tell(report);
      return false;
    }
    report.pid = command_->pid();
    tell(report);
    // Else the agent would wait for the end of our copies of the command's output.
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (int fd = 0; fd <= 2; ++fd) ::dup2(null.get(), fd);
    return true;
  }

  // The agent may be gone: that is found when its orders are read.
  void tell(const ShimReport& report) { ::send(kShimFd, &report, sizeof report, MSG_NOSIGNAL); }

  void wait_for_something(int milliseconds) {
    pollfd fds[] = {{kShimFd, POLLIN, 0}, {children_.get(), POLLIN, 0}};
    if (::poll(fds, 2, milliseconds) <= 0) return;
    if (fds[1].revents != 0) {
      signalfd_siginfo ignored[8];
      while (::read(children_.get(), ignored, sizeof ignored) > 0) {
      }
    }
    if (fds[0].revents != 0) obey();
  }

  void obey() {
    ShimOrder order;
    ssize_t n;
    while ((n = ::recv(kShimFd, &order, sizeof order, MSG_DONTWAIT)) == sizeof order) {
      if (order.what == ShimOrder::What::kKillAll) told_to_kill_ = true;
      if (ended_) continue;
      if (order.what == ShimOrder::What::kSignal) command_->signal(order.signo);
      // Its number can't be another group's: its leader has not been waited for.
      if (order.what == ShimOrder::What::kSignalGroup) ::kill(-command_->pid(), order.signo);
    }
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) told_to_kill_ = agent_is_gone_ = true;
  }

  void reap() {
    for (const pid_t pid : ended_children()) reap_one(pid);
  }

  void reap_one(pid_t pid) {
    if (ended_ || pid != command_->pid()) {
      reap_child(pid);
      return;
    }
    ShimReport report;
    report.what = ShimReport::What::kEnded;
    report.monotonic_seconds = now();
    const ExitStatus status = *command_->wait();
    report.signalled = status.signalled ? 1 : 0;
    report.code = status.code;
    ended_ = true;
    tell(report);
  }

  void wait_for_leftovers() {
    const double deadline = now() + kLeaveSeconds;
    while (!told_to_kill_ && now() < deadline) {
      reap();
      if (children_of(::getpid()).empty()) return;
      wait_for_something(20);
    }
  }

  void clean() {
    const Killed killed = kill_descendants(kKillSeconds, [this](pid_t pid) { reap_one(pid); });
    ShimReport report;
    report.what = ShimReport::What::kCleaned;
    report.count = static_cast<int32_t>(killed.names.size());
    report.stuck = static_cast<int32_t>(killed.left.size());
    std::vector<std::string> names = killed.names;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    set_text(report, join(names, ", "));
    tell(report);
    if (agent_is_gone_) remove_notice_folder();
  }

  // In place of the agent, which could not; each rank's shim tries.
  static void remove_notice_folder() {
    const char* const file = std::getenv(kNoticeVariable);
    if (file == nullptr) return;
    const std::string path = file;
    ::unlink(path.c_str());
    ::rmdir(path.substr(0, path.rfind('/')).c_str());
  }

  Fd children_;
  std::optional<ChildProcess> command_;
  bool ended_ = false;
  bool told_to_kill_ = false;
  bool agent_is_gone_ = false;
};

}  // namespace

std::string shim_program() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string_view text(path, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  const std::string_view name = text.substr(text.rfind('/') + 1);
  // tools/package/launcher.c; the link itself, else, so that a program that was replaced meanwhile is found too.
  return name.rfind("ld-linux", 0) == 0 ? program_directory() + "/../bin/skytrain" : "/proc/self/exe";
}

int run_shim(const std::vector<std::string>& words) {
  try {
    if (words.size() < 2 || ::fcntl(kShimFd, F_GETFD) < 0) return 2;
    ::fcntl(kShimFd, F_SETFD, FD_CLOEXEC);
    return Shim().run(words);
  } catch (const std::exception&) {  // nobody to tell but the agent, which sees the socket's end
    kill_descendants(kKillSeconds, reap_child);
    return 1;
  }
}

}  // namespace skytrain::launch
