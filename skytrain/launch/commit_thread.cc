#include "skytrain/launch/commit_thread.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/process_tree.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/open_files.h"
#include "skytrain/launch/stop_request.h"

namespace skytrain::launch {
namespace {

constexpr std::chrono::milliseconds kPollEvery{500};

double now() { return Clock::real().monotonic_seconds(); }

// Without links, so that names below it can be compared with those of open files. It need not exist.
std::string canonical(const std::string& path) {
  std::error_code code;
  const std::filesystem::path found = std::filesystem::weakly_canonical(std::filesystem::absolute(path), code);
  std::string text = code ? std::filesystem::absolute(path).lexically_normal().string() : found.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool is_link(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_symlink(std::filesystem::symlink_status(path, code));
}

Fd locked(const std::string& directory) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Network file systems may not lock folders.
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(ErrorKind::kEnvironment, directory, "another skytrain run commits to this folder",
                "wait for its end, or give --commit-to another folder");
  }
  return fd;
}

}  // namespace

CommitThread::CommitThread(CommitOptions options) : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  options.watch = canonical(options.watch);
  options.destination = canonical(options.destination);
  CommitHooks hooks;
  hooks.is_link = is_link;
  hooks.open_for_writing = [watch = options.watch] {
    return files_open_for_writing(descendants_of(::getpid()), watch);
  };
  hooks.stop = [] { return stop_request().now; };
  hooks.note = [this](const std::string& line) { note(line); };
  folder_ = std::make_unique<FolderCommit>(FileSystem::real(), options, std::move(hooks));
  FileSystem::real().make_directories(options.destination);
  lock_ = locked(options.destination);
  folder_->prepare();
  folder_->pass_over_what_is_there();
  thread_ = std::thread([this] { run(); });
}

CommitThread::~CommitThread() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

std::optional<std::string> CommitThread::newest_valid() {
  const std::lock_guard lock(mutex_);
  auto path = folder_->newest_valid();
  suspended_ = false;
  return path;
}

void CommitThread::end_of_attempt(bool orderly) {
  const std::lock_guard lock(mutex_);
  suspended_ = true;
  if (orderly) {
    folder_->flush(now());
  } else {
    folder_->pass_over_what_is_there();
  }
}

std::vector<std::string> CommitThread::take_notes() {
  const std::lock_guard lock(notes_mutex_);
  return std::exchange(notes_, {});
}

std::vector<std::string> CommitThread::committed() {
  const std::lock_guard lock(mutex_);
  return folder_->committed();
}

void CommitThread::run() {
  std::unique_lock stop_lock(stop_mutex_);
  while (!stop_changed_.wait_for(stop_lock, kPollEvery, [this] { return stop_; })) {
    stop_lock.unlock();
    try {
      const std::lock_guard lock(mutex_);
      if (!suspended_) folder_->poll(now());
    } catch (const std::exception& exception) {  // a file that changes while it is looked at; memory
      note(str("warning: ", exception.what()));
    }
    stop_lock.lock();
  }
}

void CommitThread::note(const std::string& line) {
  const std::lock_guard lock(notes_mutex_);
  notes_.push_back(line);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace skytrain::launch
