// skytrain/worker/worker.h
//
// The worker's side of the protocol (proto/messages.h): hello, take orders, train, report how it ended.

#pragma once

namespace skytrain::worker {

// Serves the front program at descriptor proto::kWorkerFd until the order is done. Returns the process's exit code.
int serve();

}  // namespace skytrain::worker
