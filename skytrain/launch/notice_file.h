// skytrain/launch/notice_file.h
//
// A notice as a file, for programs that poll instead of handling signals: it is absent until there is a notice, then
// {"reason": "SIGTERM", "unix_seconds": …, "deadline_unix_seconds": …}, whole at every moment. Belongs to one thread.

#pragma once
#include <optional>
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::launch {

class NoticeFile {
 public:
  // In a new folder below $TMPDIR or /tmp that only this user may enter. Throws Error(kEnvironment).
  explicit NoticeFile(FileSystem& fs);
  NoticeFile(const NoticeFile&) = delete;
  NoticeFile& operator=(const NoticeFile&) = delete;
  ~NoticeFile();  // removes the folder

  const std::string& path() const { return path_; }
  // deadline: none when nobody has announced a kill (Ctrl-C); null in the file. Replaces an earlier notice.
  void write(const std::string& reason, double unix_seconds, std::optional<double> deadline_unix_seconds);

 private:
  FileSystem& fs_;
  std::string folder_, path_;
};

}  // namespace skytrain::launch
