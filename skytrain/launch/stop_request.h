// skytrain/launch/stop_request.h
//
// StopSignal as a job sees it: a hangup (a terminal or a connection that has gone) is a notice too, and comes as often
// as it likes.

#pragma once
#include <string>

namespace skytrain::launch {

struct StopRequest {
  bool stop = false;  // ranks are to save and end
  bool now = false;   // a second request: at once
  int signo = 0;      // the last signal
};

StopRequest stop_request();  // thread-safe

std::string name_of_signal(int signo);  // "SIGTERM"

// REQUIRES: StopSignal is installed. nohup stays nohup.
void take_hangup_as_a_notice();

}  // namespace skytrain::launch
