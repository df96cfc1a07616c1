// skytrain/cli/ask_worker.h
//
// One order for a worker beside training, from its start to its answer.

#pragma once
#include "skytrain/base/json.h"
#include "skytrain/proto/messages.h"

namespace skytrain::cli {

// Starts a worker, gives it `order`, shows its notes, and returns the summary that it ends with. What the worker prints
// itself goes to a temporary file, of which the end is part of the message when it dies. Throws what it reported, and
// Error(kLostWorkers) when it died; Ctrl-C ends it: Error(kAborted).
Json ask_worker(const proto::Message& order, bool quiet);

}  // namespace skytrain::cli
