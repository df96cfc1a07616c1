// skytrain/base/log.h
//
// Lines for people: to stderr, and to a file of the run. spdlog sits behind it; this header is free of fmt, because
// LibTorch ships its own. Thread-safe. A line never holds a secret: callers pass no credentials here.

#pragma once
#include <string>
#include <string_view>

namespace skytrain {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log(LogLevel level, std::string_view line);
inline void log_debug(std::string_view line) { log(LogLevel::kDebug, line); }
inline void log_info(std::string_view line) { log(LogLevel::kInfo, line); }
inline void log_warning(std::string_view line) { log(LogLevel::kWarning, line); }
inline void log_error(std::string_view line) { log(LogLevel::kError, line); }

// Lines below `level` are dropped on stderr (default kInfo). The file gets everything.
void set_log_level(LogLevel level);
// Also appends to this file, with UTC time and level. Throws Error(kEnvironment) if it can't be opened. "" closes it.
void set_log_file(const std::string& path);
// False: nothing to stderr (a worker, whose agent owns the terminal).
void set_log_to_stderr(bool on);

}  // namespace skytrain
