#include "skytrain/launch/stop_request.h"

#include <atomic>
#include <csignal>
#include <cstring>

#include "skytrain/base/stop_signal.h"

namespace skytrain::launch {
namespace {

std::atomic<bool> g_hangup{false};

void on_hangup(int) {
  if (!g_hangup.exchange(true)) StopSignal::request();
}

}  // namespace

StopRequest stop_request() {
  const bool hangup = g_hangup.load();
  const int all = StopSignal::requests(), signo = StopSignal::last_signal();
  StopRequest request;
  request.stop = all > 0;
  request.now = all - (hangup ? 1 : 0) >= 2;
  request.signo = signo == 0 && request.stop ? SIGHUP : signo;
  return request;
}

std::string name_of_signal(int signo) {
  const char* const name = ::sigabbrev_np(signo);
  return std::string("SIG") + (name == nullptr ? "?" : name);
}

void take_hangup_as_a_notice() {
  struct sigaction action {};
  ::sigaction(SIGHUP, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;
  action.sa_handler = on_hangup;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
}

}  // namespace skytrain::launch
