#include "skytrain/checkpoint/background_save.h"

#include <sys/resource.h>

#include <utility>

namespace skytrain::checkpoint {
namespace {

// So that writing takes processors only from those who have nothing to do, mostly.
constexpr int kNiceOfWriting = 10;

}  // namespace

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundSave::start(std::function<void()> snapshot, std::function<std::string()> commit) {
  outcome_ = {};
  stage_ = Stage::kSnapshot;
  thread_ = std::thread([this, snapshot = std::move(snapshot), commit = std::move(commit)] {
    Outcome outcome;
    try {
      snapshot();
      set_stage(Stage::kCommit);
      ::setpriority(PRIO_PROCESS, 0, kNiceOfWriting);  // of this thread, on Linux
      outcome.path = commit();
    } catch (...) {
      outcome.failure = std::current_exception();
    }
    outcome_ = std::move(outcome);
    set_stage(Stage::kDone);
  });
}

void BackgroundSave::set_stage(Stage stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  changed_.notify_all();
}

void BackgroundSave::wait_for_snapshot() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ != Stage::kSnapshot; });
}

bool BackgroundSave::done() const {
  const std::lock_guard lock(mutex_);
  return stage_ == Stage::kDone;
}

BackgroundSave::Outcome BackgroundSave::take() {
  thread_.join();
  return std::move(outcome_);
}

}  // namespace skytrain::checkpoint
