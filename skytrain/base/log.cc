#include "skytrain/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <cerrno>
#include <mutex>

#include "skytrain/base/console.h"
#include "skytrain/base/error.h"

namespace skytrain {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// To stderr past the progress bar. Information speaks for itself; the other levels are named.
class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line;
    if (message.level == spdlog::level::debug) line = "debug: ";
    if (message.level == spdlog::level::warn) line = "warning: ";
    if (message.level == spdlog::level::err) line = "error: ";
    line.append(message.payload.data(), message.payload.size());
    console::print_line(2, line);
  }
  void flush_() override {}
};

struct Log {
  std::mutex mutex;
  std::shared_ptr<ConsoleSink> console = std::make_shared<ConsoleSink>();
  bool to_stderr = true;
  std::unique_ptr<spdlog::logger> file;  // null: no file
};

// Made at the first use, so that a program which logs nothing pays nothing at its start; never destroyed.
Log& instance() {
  static Log* const log = [] {
    auto* made = new Log;
    made->console->set_level(spdlog::level::info);
    return made;
  }();
  return *log;
}

}  // namespace

void log(LogLevel level, std::string_view line) {
  Log& l = instance();
  const std::lock_guard lock(l.mutex);
  const spdlog::string_view_t text(line.data(), line.size());
  const auto spdlog_level = to_spdlog(level);
  if (l.to_stderr && l.console->should_log(spdlog_level)) l.console->log({"", spdlog_level, text});
  if (l.file) l.file->log(spdlog_level, text);
}

void set_log_level(LogLevel level) {
  Log& l = instance();
  const std::lock_guard lock(l.mutex);
  l.console->set_level(to_spdlog(level));
}

void set_log_file(const std::string& path) {
  Log& l = instance();
  const std::lock_guard lock(l.mutex);
  l.file.reset();
  if (path.empty()) return;
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    sink->set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l: %v", spdlog::pattern_time_type::utc));
    l.file = std::make_unique<spdlog::logger>("file", std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(ErrorKind::kEnvironment, path, std::string("cannot open the log file: ") + error.what());
  }
  l.file->set_level(spdlog::level::trace);
  l.file->flush_on(spdlog::level::trace);  // the last lines before a crash are the ones that matter
  l.file->set_error_handler([path, reported = false](const std::string& what) mutable {
    // A full disk must not end the run, nor flood the terminal.
    if (!std::exchange(reported, true)) console::print_line(2, "warning: " + path + ": log lines are lost: " + what);
  });
}

void set_log_to_stderr(bool on) {
  Log& l = instance();
  const std::lock_guard lock(l.mutex);
  l.to_stderr = on;
}

}  // namespace skytrain
