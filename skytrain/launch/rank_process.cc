#include "skytrain/launch/rank_process.h"

#include <sys/socket.h>

#include <cerrno>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr double kCleanSeconds = 15;  // more than the shim takes for its own

ChildProcess spawn(const RankProcess::Options& options, const Fd& shim_end) {
  ChildProcess::Options spawn;
  spawn.program = options.shim;
  spawn.argv = {"skytrain", kShimVerb, options.program};
  spawn.argv.insert(spawn.argv.end(), options.command.begin(), options.command.end());
  spawn.extra_env = options.environment;
  spawn.fds = {{options.in, 0}, {options.out, 1}, {options.err, 2}, {shim_end.get(), kShimFd}};
  return ChildProcess::spawn(spawn);
}

struct Started {
  Fd control;
  ChildProcess shim;
};

Started start(const RankProcess::Options& options) {
  auto [ours, theirs] = stream_socket_pair();
  ChildProcess shim = spawn(options, theirs);
  theirs.reset();
  return {std::move(ours), std::move(shim)};
}

}  // namespace

RankProcess::RankProcess(const Options& options)
    : shim_([&] {
        Started started = start(options);
        control_ = std::move(started.control);
        return std::move(started.shim);
      }()) {
  ShimReport report;
  ssize_t n;
  do {
    n = ::recv(control_.get(), &report, sizeof report, MSG_WAITALL);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof report && report.what == ShimReport::What::kStarted) {
    pid_ = report.pid;
    return;
  }
  if (n == sizeof report) {
    const std::string why = report.text;
    const bool no_format = why.find("Exec format error") != std::string::npos;
    const bool no_interpreter = why.find("No such file") != std::string::npos;
    throw Error(ErrorKind::kEnvironment, options.program, why,
                no_format        ? "a script starts with a line such as #!/bin/sh; or put its interpreter before it"
                : no_interpreter ? "the interpreter that its first line names, or its loader, is missing"
                                 : "");
  }
  throw Error(ErrorKind::kEnvironment, options.program,
              str("cannot be started: the process above it ", shim_.wait()->describe()));
}

RankProcess::~RankProcess() {
  control_.reset();
  try {
    shim_.wait(kCleanSeconds);
  } catch (const std::exception&) {  // its own destructor kills it
  }
}

std::optional<ShimReport> RankProcess::receive() {
  if (closed_) return std::nullopt;
  ShimReport report;
  // Reports are sent whole, so there is all of one or nothing.
  const ssize_t n = ::recv(control_.get(), &report, sizeof report, MSG_DONTWAIT);
  if (n == sizeof report) return report;
  if (n >= 0 || (errno != EAGAIN && errno != EINTR)) closed_ = true;
  return std::nullopt;
}

void RankProcess::wait_for_shim() { shim_.wait(kCleanSeconds); }

void RankProcess::signal(int signo) { order(ShimOrder::What::kSignal, signo); }
void RankProcess::signal_group(int signo) { order(ShimOrder::What::kSignalGroup, signo); }
void RankProcess::kill_all() { order(ShimOrder::What::kKillAll, 0); }

void RankProcess::order(ShimOrder::What what, int signo) {
  const ShimOrder order{what, signo};
  ::send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);  // a shim that has gone needs no order
}

}  // namespace skytrain::launch
