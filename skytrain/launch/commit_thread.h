// skytrain/launch/commit_thread.h
//
// FolderCommit beside a running job, in a thread of its own, as copies take their time. Its methods are for one caller,
// the job's thread.

#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "skytrain/base/process.h"
#include "skytrain/launch/folder_commit.h"

namespace skytrain::launch {

class CommitThread {
 public:
  // Makes the folders, locks the destination and starts. Throws Error(kUsage), Error(kEnvironment).
  explicit CommitThread(CommitOptions options);
  ~CommitThread();

  // Before an attempt: what is to be resumed from. Commits go on from here.
  std::optional<std::string> newest_valid();
  // A rank has ended in a way that may have cut a file short: nothing that is not complete by now is committed.
  void suspend() { suspended_ = true; }
  // orderly: what the ranks wrote is complete, and is committed; throws the Error that prevents it.
  void end_of_attempt(bool orderly);

  int wake_fd() const { return wake_.get(); }  // readable: take_notes() has something
  std::vector<std::string> take_notes();
  std::vector<std::string> committed();

 private:
  void run();
  void note(const std::string& line);

  Fd lock_, wake_;
  std::mutex mutex_;  // of folder_
  std::unique_ptr<FolderCommit> folder_;
  std::mutex notes_mutex_;
  std::vector<std::string> notes_;
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::atomic<bool> suspended_ = true;
  std::thread thread_;
};

}  // namespace skytrain::launch
