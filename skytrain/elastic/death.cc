#include "skytrain/elastic/death.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <deque>
#include <fstream>
#include <iterator>

#include "skytrain/base/text.h"

namespace skytrain::elastic {
namespace {

constexpr uint64_t kTailBytes = 16 << 10;

std::string advice(const Death& death) {
  if (!death.status || !death.status->signalled) return "";
  switch (death.status->code) {
    case SIGKILL:
      return death.oom_killer_struck
                 ? "the kernel's out-of-memory killer struck meanwhile: fewer devices, a smaller train.slot or "
                   "eval.batch need less memory"
                 : "if nobody killed it, the kernel's out-of-memory killer may have (see dmesg): fewer devices, a "
                   "smaller train.slot or eval.batch need less memory";
    case SIGILL:
      return "it met an instruction that this CPU lacks: `skytrain env` shows what the CPU can";
    case SIGBUS:
      return "a file that it had mapped became shorter, or a disk or memory failed";
    default:
      return "";
  }
}

}  // namespace

Error death_error(const Death& death) {
  const bool signalled = death.status && death.status->signalled;
  std::string what = "skytrain-worker ";
  what += death.status ? death.status->describe() : "closed its connection";
  if (!death.had_started) {
    what += " before it said hello";
  } else if (death.last_step > 0) {
    what += str(" after step ", death.last_step);
  } else {
    what += " before its first step";
  }
  if (death.had_started && !signalled) what += ", without a word";

  std::vector<std::string> hint;
  if (const std::string text = advice(death); !text.empty()) hint.push_back(text);
  if (death.had_started) hint.push_back("the same command resumes from the newest checkpoint");
  if (!death.last_words.empty()) hint.push_back("last lines of " + death.log_file + ":\n" + death.last_words);
  const ErrorKind kind = death.had_started || signalled ? ErrorKind::kLostWorkers : ErrorKind::kEnvironment;
  return Error(kind, "", what, join(hint, "\n"));
}

std::string last_lines(const std::string& path, uint64_t begin, int lines) {
  std::ifstream file(path, std::ios::binary);
  const uint64_t size = file_size_or_zero(path);
  if (!file || size <= begin) return "";
  const uint64_t tail = std::max(begin, size - std::min(size, kTailBytes));
  file.seekg(static_cast<std::streamoff>(tail));
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last.push_back("  " + printable(line));
    if (last.size() > static_cast<size_t>(lines)) last.pop_front();
  }
  return join({last.begin(), last.end()}, "\n");
}

uint64_t file_size_or_zero(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

uint64_t oom_kills(std::string_view vmstat) {
  constexpr std::string_view kKey = "\noom_kill ";
  const size_t at = vmstat.find(kKey);
  uint64_t count = 0;
  if (at != std::string_view::npos) {
    const char* first = vmstat.data() + at + kKey.size();
    std::from_chars(first, vmstat.data() + vmstat.size(), count);
  }
  return count;
}

uint64_t oom_kills_so_far() {
  std::ifstream file("/proc/vmstat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return oom_kills(text);
}

}  // namespace skytrain::elastic
