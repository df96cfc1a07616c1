#include "skytrain/base/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

extern char** environ;

namespace skytrain {
namespace {

// Everything that the child needs, made before the fork, so that it allocates nothing.
struct Plan {
  const char* program = nullptr;
  std::vector<char*> argv, envp;
  std::vector<std::pair<int, int>> fds;  // (ours, number in the child)
  int first_free = 3;                    // above every number that the child gets
  int output = -1;
  int null_input = -1;
  int report = -1;  // close-on-exec: errno goes here when exec fails
  pid_t parent = 0;
  bool new_process_group = false;
  int parent_death_signal = 0;
};

void mark_all_close_on_exec() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  rlimit limit{};  // Linux before 5.11
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65536));
  for (int fd = 3; fd < end; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

void restore_signals() {
  for (int signo = 1; signo < NSIG; ++signo) {
    struct sigaction action {};
    if (::sigaction(signo, nullptr, &action) != 0) continue;
    // What our caller ignores (nohup) stays ignored; SIGPIPE is ignored by us, not by our caller.
    if (action.sa_handler == SIG_IGN && signo != SIGPIPE) continue;
    action.sa_handler = SIG_DFL;
    action.sa_flags = 0;
    ::sigaction(signo, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child; async-signal-safe calls only.
[[noreturn]] void run_child(Plan& plan) {
  const auto fail = [&](int errnum) {
    [[maybe_unused]] const ssize_t ignored = ::write(plan.report, &errnum, sizeof errnum);
    ::_exit(127);
  };
  if (plan.new_process_group) ::setpgid(0, 0);
  if (plan.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, plan.parent_death_signal) != 0) fail(errno);
    if (::getppid() != plan.parent) ::_exit(127);  // it died before the prctl
  }
  mark_all_close_on_exec();
  // First out of the way of every number to be given, then into place: numbers may overlap.
  plan.report = ::fcntl(plan.report, F_DUPFD_CLOEXEC, plan.first_free);
  if (plan.output >= 0) plan.output = ::fcntl(plan.output, F_DUPFD_CLOEXEC, plan.first_free);
  if (plan.null_input >= 0) plan.null_input = ::fcntl(plan.null_input, F_DUPFD_CLOEXEC, plan.first_free);
  for (auto& [ours, theirs] : plan.fds) {
    ours = ::fcntl(ours, F_DUPFD_CLOEXEC, plan.first_free);
    if (ours < 0) fail(errno);
  }
  if (plan.null_input >= 0 && ::dup2(plan.null_input, 0) < 0) fail(errno);
  if (plan.output >= 0 && (::dup2(plan.output, 1) < 0 || ::dup2(plan.output, 2) < 0)) fail(errno);
  for (const auto& [ours, theirs] : plan.fds) {
    if (::dup2(ours, theirs) < 0) fail(errno);
  }
  restore_signals();
  ::execve(plan.program, plan.argv.data(), plan.envp.data());
  fail(errno);
  ::_exit(127);
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& extra) {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const auto& e) { return e.first == name; });
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : extra) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

Fd open_null() {
  Fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) throw errno_error("/dev/null", "cannot open", errno);
  return fd;
}

std::string signal_name(int signo) {
  const char* const name = ::sigabbrev_np(signo);
  return name == nullptr ? str("signal ", signo) : str("SIG", name);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string ExitStatus::describe() const {
  if (signalled) return str("was killed by ", signal_name(code), " (", code, ")");
  return str("exited with code ", code);
}

ChildProcess ChildProcess::spawn(const Options& options) {
  if (options.argv.empty()) throw Error(ErrorKind::kInternal, "", "a child process needs a program to run");
  const std::string& program = options.program.empty() ? options.argv[0] : options.program;

  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = environment_with(options.extra_env);
  Plan plan;
  plan.program = program.c_str();
  plan.argv = pointers(arguments);
  plan.envp = pointers(environment);
  plan.fds = options.fds;
  plan.parent = ::getpid();
  plan.new_process_group = options.new_process_group;
  plan.parent_death_signal = options.parent_death_signal;
  bool gets_input = false;
  for (const auto& [ours, theirs] : options.fds) {
    plan.first_free = std::max(plan.first_free, theirs + 1);
    gets_input = gets_input || theirs == 0;
  }

  Fd output, null_input;
  if (!options.stdout_stderr_file.empty()) {
    output = Fd(::open(options.stdout_stderr_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!output) throw errno_error(options.stdout_stderr_file, "cannot open for writing", errno);
    plan.output = output.get();
  }
  if (options.new_process_group && !gets_input) {
    null_input = open_null();
    plan.null_input = null_input.get();
  }
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw errno_error(program, "cannot start", errno);
  Fd report_read(report[0]), report_write(report[1]);
  plan.report = report_write.get();

  // No handler of ours may run in the child before exec.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  const int fork_errno = errno;
  if (pid == 0) run_child(plan);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw errno_error(program, "cannot start", fork_errno);

  ChildProcess child;
  child.pid_ = pid;
  child.own_group_ = options.new_process_group;
  child.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd_) {
    const int errnum = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw errno_error(program, "cannot watch the process (pidfd_open; Linux 5.3 or newer is needed)", errnum);
  }
  report_write.reset();
  int errnum = 0;
  ssize_t n;
  do {
    n = ::read(report_read.get(), &errnum, sizeof errnum);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof errnum) {
    child.wait();
    throw errno_error(program, "cannot start", errnum);
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    own_group_ = other.own_group_;
    status_ = std::exchange(other.status_, std::nullopt);
    peak_rss_bytes_ = other.peak_rss_bytes_;
  }
  return *this;
}

ChildProcess::~ChildProcess() { end(); }

void ChildProcess::end() noexcept {
  if (pid_ <= 0 || status_) return;
  // The group still exists: its leader has not been reaped, so its number can't belong to anyone else.
  ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // in case it had not made its group yet
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ChildProcess::signal(int signo) {
  if (pid_ > 0 && !status_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signo, nullptr, 0);
}

std::optional<ExitStatus> ChildProcess::wait(double seconds) {
  if (status_) return status_;
  const double deadline = seconds < 0 ? INFINITY : Clock::real().monotonic_seconds() + seconds;
  while (true) {
    const double left = deadline - Clock::real().monotonic_seconds();
    const int timeout = std::isinf(left) ? -1 : static_cast<int>(std::clamp(std::ceil(left * 1000), 0.0, 1e9));
    pollfd poll_fd{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&poll_fd, 1, timeout);
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) throw errno_error(str("process ", pid_), "cannot wait", errno);
    if (ready == 0 && Clock::real().monotonic_seconds() >= deadline) return std::nullopt;
  }
  int raw = 0;
  rusage usage{};
  while (::wait4(pid_, &raw, 0, &usage) < 0) {
    if (errno != EINTR) throw errno_error(str("process ", pid_), "cannot wait", errno);
  }
  peak_rss_bytes_ = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  status_ = WIFSIGNALED(raw) ? ExitStatus{true, WTERMSIG(raw)} : ExitStatus{false, WEXITSTATUS(raw)};
  return status_;
}

std::pair<Fd, Fd> stream_socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw errno_error("socketpair", "cannot make a pair of sockets", errno);
  }
  return {Fd(fds[0]), Fd(fds[1])};
}

std::string program_directory() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) throw errno_error("/proc/self/exe", "cannot find the program's own folder", errno);
  const std::string_view text(path, static_cast<size_t>(n));
  return std::string(text.substr(0, std::max<size_t>(1, text.find_last_of('/'))));
}

uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      uint64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

double process_start_unix_seconds(pid_t pid) {
  const std::string path = str("/proc/", pid, "/stat");
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw errno_error(path, "cannot read", ENOENT);
  // The name in parentheses may hold spaces and parentheses; field 3 starts after the last one.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  // Against the clock that starttime counts in, which has no jumps, rather than /proc/stat's btime in whole seconds.
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const double since_boot = static_cast<double>(boot.tv_sec) + 1e-9 * static_cast<double>(boot.tv_nsec);
  return Clock::real().unix_seconds() - (since_boot - ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace skytrain
