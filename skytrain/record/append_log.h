// skytrain/record/append_log.h
//
// Appends whole records to a file and never leaves half a record in its middle.
//
// A write that fails (a full disk) may have put any part of its bytes into the file. The log remembers how long the
// file was after the last write that succeeded, keeps the records that are not in it yet, and cuts the file back to
// that length before it writes again: the same records, once, whole. Thread-safe: sync() does not hold up the others.

#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "skytrain/base/file_system.h"

namespace skytrain::record {

class AppendLog {
 public:
  // path: a file of `size` bytes of whole records, or none and size 0 (then it is created, durably).
  AppendLog(FileSystem& fs, std::string path, uint64_t size);
  ~AppendLog();  // writes what is buffered; a failure is swallowed, the file is left whole

  AppendLog(const AppendLog&) = delete;
  AppendLog& operator=(const AppendLog&) = delete;

  void append(std::string_view record);
  // Hands everything to the operating system. After an Error the records are kept, and the next call tries again.
  void flush();
  // flush(), and the bytes are on the disk when it returns. Once the disk has refused, it fails for good: the kernel
  // drops the pages it could not write, so a later success would say nothing about them.
  void sync();

 private:
  // REQUIRES for all of these: mutex_ is held.
  void open();
  void cut_partial_record();
  void write_pending();

  FileSystem& fs_;
  std::string path_;
  uint64_t size_;  // bytes of whole records in the file
  std::mutex mutex_;
  std::string pending_;
  std::shared_ptr<WritableFile> file_;
  bool sync_failed_ = false;
};

}  // namespace skytrain::record
