// skytrain/checkpoint/background_save.h
//
// Saving beside the training: a thread takes the snapshot and then writes it, one save at a time. Training waits only
// where it is about to change what has not been copied yet.

#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace skytrain::checkpoint {

class BackgroundSave {
 public:
  struct Outcome {
    std::string path;            // of the checkpoint
    std::exception_ptr failure;  // null: it is committed
  };

  BackgroundSave() = default;
  ~BackgroundSave();  // waits until all is written
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // All of these: one caller.

  // snapshot: copies the state. commit: writes the copy and returns its path, at a lower priority. What either throws
  // is the outcome's. REQUIRES: the outcome of the last save was taken.
  void start(std::function<void()> snapshot, std::function<std::string()> commit);
  // Returns when the state may be changed again, at once if no save is going on.
  void wait_for_snapshot();
  bool going_on() const { return thread_.joinable(); }
  // Whether take() would return at once.
  bool done() const;
  // Waits for the save's end. REQUIRES: going_on().
  Outcome take();

 private:
  enum class Stage { kSnapshot, kCommit, kDone };

  void set_stage(Stage stage);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kDone;
  Outcome outcome_;
  std::thread thread_;
};

}  // namespace skytrain::checkpoint
