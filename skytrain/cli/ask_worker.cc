#include "skytrain/cli/ask_worker.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/text.h"
#include "skytrain/elastic/worker_location.h"
#include "skytrain/elastic/worker_process.h"

namespace skytrain::cli {
namespace {

class Notes final : public elastic::WorkerObserver {
 public:
  void on_note(const proto::Note& note) override {
    log(note.level == "warning" ? LogLevel::kWarning : LogLevel::kInfo, printable(note.line, 2000));
  }
};

// A file that goes with this object.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "skytrain-worker.XXXXXX").string()) {
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) throw Error(ErrorKind::kEnvironment, path_, "cannot be created", "set TMPDIR to a folder with room");
    ::close(fd);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Json ask_worker(const proto::Message& order, bool quiet) {
  set_log_level(quiet ? LogLevel::kWarning : LogLevel::kInfo);
  const TemporaryFile log;
  elastic::WorkerOptions options;
  options.program = elastic::require_worker(elastic::locate_worker());
  options.log_file = log.path();
  options.order = order;
  Notes notes;
  const elastic::WorkerEnd end = elastic::run_worker(options, notes);
  if (const auto* finished = std::get_if<proto::Finished>(&end.outcome)) return finished->summary;
  if (const auto* error = std::get_if<Error>(&end.outcome)) throw *error;
  throw Error(ErrorKind::kAborted, "", "stopped before it was done");
}

}  // namespace skytrain::cli
