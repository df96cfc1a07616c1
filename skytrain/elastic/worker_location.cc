#include "skytrain/elastic/worker_location.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"

namespace skytrain::elastic {

WorkerLocation locate_worker() { return locate_worker(program_directory(), std::getenv("SKYTRAIN_WORKER")); }

WorkerLocation locate_worker(const std::string& program_folder, const char* override_path) {
  WorkerLocation location;
  location.from_environment = override_path != nullptr && *override_path != '\0';
  const std::filesystem::path path = location.from_environment
                                         ? std::filesystem::absolute(override_path)
                                         : std::filesystem::path(program_folder) / "../libexec/skytrain-worker";
  location.path = path.lexically_normal().string();
  struct stat info {};
  if (::stat(location.path.c_str(), &info) != 0) {
    location.problem = errno == ENOENT || errno == ENOTDIR ? "there is no such file" : std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    location.problem = "is not a file";
  } else if (::access(location.path.c_str(), X_OK) != 0) {
    location.problem = "is not executable";
  }
  return location;
}

std::string require_worker(const WorkerLocation& location) {
  if (location.problem.empty()) return location.path;
  throw Error(ErrorKind::kEnvironment, location.path, "skytrain-worker can't be started: " + location.problem,
              location.from_environment
                  ? "SKYTRAIN_WORKER names it: unset the variable, or let it name the program skytrain-worker"
                  : "install it beside skytrain (bin/skytrain, libexec/skytrain-worker), or set SKYTRAIN_WORKER to it");
}

}  // namespace skytrain::elastic
