// skytrain/base/error.h
//
// The one way in which SkyTrain reports a failure that a user can act on.
//
// An Error says what went wrong, where, and what to do next, in one line for people (`message()`), and carries the
// kind that decides the exit code. It is thrown; main() and the worker turn it into a line and an exit code. Anything
// else that escapes (std::bad_alloc, a LibTorch c10::Error nobody translated) is a bug of ours: exit code 1.

#pragma once
#include <exception>
#include <string>
#include <string_view>

namespace skytrain {

// Values are exit codes and part of the command line's contract: never renumber.
enum class ErrorKind : int {
  kInternal = 1,      // a bug in SkyTrain
  kUsage = 2,         // the command line
  kRecipe = 3,        // the recipe, or a --set
  kData = 4,          // data set, checkpoint or weight file
  kEnvironment = 5,   // disk, permissions, memory, missing program or library, device
  kCloud = 6,         // quota, capacity, credentials
  kLostWorkers = 7,   // a worker died and could not be replaced
  kDiverged = 8,      // loss or gradient became NaN or infinite
  kBudget = 9,        // money or time budget reached
  kInterrupted = 75,  // stopped on request, state saved, can be resumed
  kAborted = 130,     // stopped on a second request, at once
};

// "usage", "recipe", "data", "environment", … as in --json output and on the wire.
std::string_view error_kind_name(ErrorKind kind);
// Inverse of error_kind_name; an unknown name gives kInternal.
ErrorKind error_kind_from_name(std::string_view name);
inline int exit_code(ErrorKind kind) { return static_cast<int>(kind); }

class Error : public std::exception {
 public:
  // where: "file:line:column: key.path", a file, a shard+member, a flag; may be empty.
  // what: one clause, lower case, no full stop. hint: what to do next; may be empty, may have several lines.
  Error(ErrorKind kind, std::string where, std::string what, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::string& where() const { return where_; }
  const std::string& problem() const { return problem_; }
  const std::string& hint() const { return hint_; }

  // "where: what\n  hint" (or "what" alone): what a person reads. Control characters in the parts are escaped.
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string where_, problem_, hint_, message_;
};

// Error(kEnvironment, where, "<failed>: <text of errnum>") with a hint that fits the errno. failed: "cannot open".
Error errno_error(std::string where, std::string_view failed, int errnum);

}  // namespace skytrain
