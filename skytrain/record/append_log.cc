#include "skytrain/record/append_log.h"

#include <utility>

#include "skytrain/base/error.h"

namespace skytrain::record {

namespace {

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

AppendLog::AppendLog(FileSystem& fs, std::string path, uint64_t size) : fs_(fs), path_(std::move(path)), size_(size) {
  const bool created = !fs_.exists(path_);
  open();
  if (created) {
    file_->sync();
    fs_.sync_directory(parent(path_));
  }
}

AppendLog::~AppendLog() {
  try {
    flush();
    if (file_) file_->close();
  } catch (const Error&) {
    file_.reset();
    try {
      cut_partial_record();
    } catch (const Error&) {
      // The disk takes nothing any more; readers know a torn last record when they see one.
    }
  }
}

// Append mode, because the position of any other handle would stay behind a cut and leave a hole of zeros.
void AppendLog::open() { file_ = fs_.open_write(path_, FileSystem::Mode::kAppend); }

void AppendLog::cut_partial_record() {
  const auto info = fs_.stat(path_);
  if (info && info->size > size_) fs_.truncate(path_, size_);
}

void AppendLog::append(std::string_view record) {
  const std::lock_guard lock(mutex_);
  pending_.append(record);
}

void AppendLog::flush() {
  const std::lock_guard lock(mutex_);
  write_pending();
}

void AppendLog::write_pending() {
  if (pending_.empty()) return;
  if (!file_) {
    cut_partial_record();
    open();
  }
  try {
    file_->append(pending_);
  } catch (...) {
    file_.reset();  // its bytes may be in the file in part: the next write starts with a cut
    throw;
  }
  size_ += pending_.size();
  pending_.clear();
}

void AppendLog::sync() {
  std::shared_ptr<WritableFile> file;
  {
    const std::lock_guard lock(mutex_);
    write_pending();
    if (sync_failed_) {
      throw Error(ErrorKind::kEnvironment, path_, "an earlier write to the disk failed, so what was logged may be lost",
                  "check the disk (dmesg), then resume the run");
    }
    if (!file_) open();
    file = file_;
  }
  try {
    file->sync();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    sync_failed_ = true;
    throw;
  }
}

}  // namespace skytrain::record
