#include "skytrain/base/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "skytrain/base/error.h"

namespace skytrain {
namespace {

std::atomic<int> g_requests{0};
std::atomic<int> g_last_signal{0};
std::atomic<bool> g_noticed{false};
std::atomic<int64_t> g_announced_ms{-1};
std::atomic<int64_t> g_last_ms{-StopSignal::kSameRequestMs};
std::atomic<int> g_read_fd{-1};
std::atomic<int> g_write_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "used in a signal handler");

void wake() {
  const int fd = g_write_fd.load();
  if (fd >= 0) {
    const char byte = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(fd, &byte, 1);  // a full pipe is readable already
  }
}

void count_request() {
  g_requests.fetch_add(1);
  wake();
}

int64_t monotonic_ms() {  // clock_gettime is async-signal-safe
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void on_signal(int signo) {
  const int saved = errno;
  g_last_signal.store(signo);
  const int64_t now = monotonic_ms();
  int64_t never = -1;
  if (signo != SIGINT) g_announced_ms.compare_exchange_strong(never, now);
  if (signo == SIGUSR1) {
    g_noticed.store(true);
    wake();
  } else if (now - g_last_ms.exchange(now) >= StopSignal::kSameRequestMs)
    count_request();
  errno = saved;
}

}  // namespace

void StopSignal::install() {
  if (g_read_fd.load() < 0) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) throw errno_error("signal handling", "cannot make a pipe", errno);
    g_read_fd.store(fds[0]);
    g_write_fd.store(fds[1]);
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

int StopSignal::requests() { return std::max(g_requests.load(), g_noticed.load() ? 1 : 0); }
int StopSignal::last_signal() { return g_last_signal.load(); }
int StopSignal::fd() { return g_read_fd.load(); }
std::optional<double> StopSignal::announced() {
  const int64_t at = g_announced_ms.load();
  return at < 0 ? std::nullopt : std::optional(static_cast<double>(at) / 1000);
}
void StopSignal::request() { count_request(); }

void StopSignal::reset_for_test() {
  g_requests.store(0);
  g_last_signal.store(0);
  g_noticed.store(false);
  g_announced_ms.store(-1);
  g_last_ms.store(-kSameRequestMs);
  char byte;
  while (g_read_fd.load() >= 0 && ::read(g_read_fd.load(), &byte, 1) == 1) {
  }
}

}  // namespace skytrain
