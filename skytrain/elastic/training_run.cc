#include "skytrain/elastic/training_run.h"

#include <algorithm>

#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/memory_snapshot.h"

namespace skytrain::elastic {

WorkerEnd run_training(WorkerOptions options, int64_t max_restarts, TrainingObserver& observer) {
  checkpoint::MemorySnapshot::Files memory;
  auto& start = std::get<proto::Start>(options.order);
  start.keep_snapshot = max_restarts > 0;
  if (start.keep_snapshot) {
    memory = checkpoint::MemorySnapshot::create();
    options.fds.emplace_back(memory.image.get(), proto::kSnapshotFd);
    options.fds.emplace_back(memory.manifest.get(), proto::kSnapshotManifestFd);
  }
  uint64_t peak = 0;
  for (int64_t restarts = 0;; ++restarts) {
    WorkerEnd end = run_worker(options, observer);
    end.peak_rss_bytes = peak = std::max(peak, end.peak_rss_bytes);
    const Error* const error = std::get_if<Error>(&end.outcome);
    if (error == nullptr || !end.died || error->kind() != ErrorKind::kLostWorkers || StopSignal::requests() > 0)
      return end;
    if (restarts == max_restarts || !end.progressed) {
      if (restarts == 0) return end;
      const std::string count = str(restarts, restarts == 1 ? " restart" : " restarts");
      end.outcome = Error(error->kind(), error->where(), error->problem() + ", after " + count, error->hint());
      return end;
    }
    observer.on_restart(*error, restarts + 1, max_restarts);
    start.resume = true;
    if (end.recipe.is_object()) start.recipe = end.recipe;  // what auto decided stays decided
  }
}

}  // namespace skytrain::elastic
