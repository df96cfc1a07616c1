#include "skytrain/base/error.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "skytrain/base/text.h"

namespace skytrain {
namespace {

constexpr std::pair<ErrorKind, std::string_view> kNames[] = {
    {ErrorKind::kInternal, "internal"},
    {ErrorKind::kUsage, "usage"},
    {ErrorKind::kRecipe, "recipe"},
    {ErrorKind::kData, "data"},
    {ErrorKind::kEnvironment, "environment"},
    {ErrorKind::kCloud, "cloud"},
    {ErrorKind::kLostWorkers, "lost_workers"},
    {ErrorKind::kDiverged, "diverged"},
    {ErrorKind::kBudget, "budget"},
    {ErrorKind::kInterrupted, "interrupted"},
    {ErrorKind::kAborted, "aborted"},
};

// Far more than any honest message needs; a hostile file name or key can't flood the terminal.
constexpr size_t kPartLimit = 2000;

std::string compose(const std::string& where, const std::string& problem, const std::string& hint) {
  std::string out;
  if (!where.empty()) out += printable(where, kPartLimit) + ": ";
  out += printable(problem, kPartLimit);
  size_t begin = 0;
  while (begin < hint.size()) {
    size_t end = hint.find('\n', begin);
    if (end == std::string::npos) end = hint.size();
    out += "\n  " + printable(std::string_view(hint).substr(begin, end - begin), kPartLimit);
    begin = end + 1;
  }
  return out;
}

std::string hint_for_errno(int errnum) {
  switch (errnum) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose a folder on another disk";
    case EACCES:
    case EPERM:
      return "check the owner and the permissions (ls -ld), or choose another folder";
    case EROFS:
      return "the file system is mounted read-only: choose another folder";
    case ENOENT:
      return "check the path";
    case ENOTDIR:
      return "a part of the path is a file, not a folder: check the path";
    case EISDIR:
      return "this is a folder where a file is expected: check the path";
    case EIO:
      return "the disk reported a failure: check dmesg, and copy what matters to another disk";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise the limit (ulimit -n)";
    case ENOMEM:
      return "the machine is out of memory: end other programs";
    case ENAMETOOLONG:
      return "choose a shorter path";
    default:
      return {};
  }
}

}  // namespace

std::string_view error_kind_name(ErrorKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "internal";
}

ErrorKind error_kind_from_name(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (known == name) return kind;
  }
  return ErrorKind::kInternal;
}

Error::Error(ErrorKind kind, std::string where, std::string what, std::string hint)
    : kind_(kind),
      where_(std::move(where)),
      problem_(std::move(what)),
      hint_(std::move(hint)),
      message_(compose(where_, problem_, hint_)) {}

Error errno_error(std::string where, std::string_view failed, int errnum) {
  return Error(ErrorKind::kEnvironment, std::move(where), str(failed, ": ", std::strerror(errnum)),
               hint_for_errno(errnum));
}

}  // namespace skytrain
