#include "skytrain/launch/notice_file.h"

#include <cerrno>
#include <cstdlib>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"

namespace skytrain::launch {

NoticeFile::NoticeFile(FileSystem& fs) : fs_(fs) {
  const char* const temporary = std::getenv("TMPDIR");
  folder_ = std::string(temporary == nullptr || *temporary != '/' ? "/tmp" : temporary) + "/skytrain-run-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) throw errno_error(folder_, "cannot make a temporary folder", errno);
  path_ = folder_ + "/notice.json";
}

NoticeFile::~NoticeFile() {
  try {
    fs_.remove_tree(folder_);
  } catch (const Error&) {  // a leftover in a temporary folder
  }
}

void NoticeFile::write(const std::string& reason, double unix_seconds, std::optional<double> deadline_unix_seconds) {
  const OrderedJson notice = {
      {"reason", reason},
      {"unix_seconds", unix_seconds},
      {"deadline_unix_seconds", deadline_unix_seconds ? OrderedJson(*deadline_unix_seconds) : OrderedJson()}};
  write_file_atomically(fs_, path_, notice.dump() + "\n");
}

}  // namespace skytrain::launch
