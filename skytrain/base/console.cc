#include "skytrain/base/console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace skytrain::console {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

struct State {
  std::mutex mutex;
  int bar_fd = -1;
  std::string bar;
};

State& state() {
  static State* const instance = new State;
  return *instance;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      if (::poll(&ready, 1, 1000) <= 0) return;  // a terminal that takes nothing for a second loses the line
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

void print_line(int fd, std::string_view line) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string out;
  const bool over_bar = !s.bar.empty() && s.bar_fd == fd;
  if (over_bar) out += kEraseLine;
  out += line;
  out += '\n';
  if (over_bar) out += s.bar;
  write_all(fd, out);  // in one write: other processes share the terminal
}

void set_bar(int fd, const std::string& bar) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  write_all(fd, std::string(kEraseLine) + bar);
  s.bar_fd = fd;
  s.bar = bar;
}

void end_bar() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.bar.empty()) write_all(s.bar_fd, "\n");
  s.bar.clear();
  s.bar_fd = -1;
}

}  // namespace skytrain::console
