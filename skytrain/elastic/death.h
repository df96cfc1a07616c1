// skytrain/elastic/death.h
//
// What to tell people of a worker that ended without saying why.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"

namespace skytrain::elastic {

struct Death {
  std::optional<ExitStatus> status;  // none: it still ran and had to be killed
  bool had_started = false;          // it had said hello
  uint64_t last_step = 0;            // the last step that it reported, 0: none
  bool oom_killer_struck = false;    // this machine's out-of-memory killer, somewhere, while it ran
  std::string log_file;              // where its output went
  std::string last_words;            // the last lines of it
};

// Before its hello kEnvironment (it could not be loaded), later kLostWorkers; a death by signal is always the latter.
Error death_error(const Death& death);

// The last `lines` lines that are not empty of what `path` holds from byte `begin` on; "" when there are none.
std::string last_lines(const std::string& path, uint64_t begin, int lines);
// Size of a file, 0 when it is not there.
uint64_t file_size_or_zero(const std::string& path);

// The counter "oom_kill" of /proc/vmstat's text; 0 when it is not there.
uint64_t oom_kills(std::string_view vmstat);
uint64_t oom_kills_so_far();

}  // namespace skytrain::elastic
