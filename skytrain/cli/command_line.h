// skytrain/cli/command_line.h
//
// The command line as a whole: which verb with which flags, help, and refusals with "did you mean".

#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "skytrain/cli/verb.h"

namespace skytrain::cli {

struct CommandLine {
  CommandLine();
  CLI::App app;
  Actions actions;
};

// The command line up to the words of a foreign program (`run [FLAGS] [--] PROGRAM WORDS…`), and those.
struct SplitCommandLine {
  std::vector<std::string> ours;
  std::vector<std::string> command;
};
SplitCommandLine split_command_line(const CommandLine& command_line, const std::vector<std::string>& arguments);

// Help of `app`, with the verbs that lead to it in its usage line.
std::string full_help(const CLI::App& app);

// "skytrain 0.1.0 (commit 3544b8e0a1b2)"
std::string version_line();

// Runs the command line and returns the exit code; never throws. arguments: without the program's name.
int run(const std::vector<std::string>& arguments);

}  // namespace skytrain::cli
