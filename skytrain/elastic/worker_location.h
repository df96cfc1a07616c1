// skytrain/elastic/worker_location.h
//
// Where skytrain-worker is: $SKYTRAIN_WORKER when set, else ../libexec/skytrain-worker beside the running program.
// Thread-safe.

#pragma once
#include <string>

namespace skytrain::elastic {

struct WorkerLocation {
  std::string path;
  bool from_environment = false;  // $SKYTRAIN_WORKER
  std::string problem;            // why it can't be started, one clause; empty: it can
};

WorkerLocation locate_worker();
// The same for a given program folder and value of the variable (nullptr: not set).
WorkerLocation locate_worker(const std::string& program_folder, const char* override_path);

// The path. Throws Error(kEnvironment) with a hint when there is no worker that could be started.
std::string require_worker(const WorkerLocation& location);

}  // namespace skytrain::elastic
