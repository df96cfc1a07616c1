// skytrain/cli/train.h
//
// `skytrain train`: recipe -> run directory -> worker -> result.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/cli/resume.h"

namespace skytrain::cli {

struct TrainFlags {
  std::string recipe;
  std::vector<std::string> sets;
  std::string runs = "runs";
  std::string resume = "auto";
  uint64_t log_every = 0;  // 0: not given
  bool explain = false, json = false, dry_run = false, quiet = false;
};

// Returns the exit code. Throws Error for what fails before there is a run; afterwards the run's records say it too.
int train(const TrainFlags& flags);

// One argument as a POSIX shell reads it back.
std::string shell_quoted(const std::string& argument);
// The command that continues a run started with these flags.
std::string resume_command(const std::string& program, const TrainFlags& flags);

}  // namespace skytrain::cli
