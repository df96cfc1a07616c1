// skytrain/base/console.h
//
// Who may write to the terminal when: log lines and the progress bar share stderr, and a line must not tear the bar.
// Thread-safe. Write errors are ignored: a closed terminal is no reason to end a training run.

#pragma once
#include <string>
#include <string_view>

namespace skytrain::console {

// Prints `line` and a newline on `fd`; a bar that stands there is erased first and drawn again below.
void print_line(int fd, std::string_view line);

// Draws `bar` (one line, no newline) in place of the one before. "" erases it.
void set_bar(int fd, const std::string& bar);

// Leaves the bar on the screen for good and goes to the next line.
void end_bar();

}  // namespace skytrain::console
