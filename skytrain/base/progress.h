// skytrain/base/progress.h
//
// How far a long task is, for people: a bar with rate and ETA redrawn in place on a terminal, calm lines elsewhere
// (at most one every few seconds, and one at each 10 %). Writes to stderr only. Not thread-safe: one owner; but log()
// may be called from any thread, and its lines don't tear the bar.

#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "skytrain/base/clock.h"

namespace skytrain {

class Progress {
 public:
  struct Options {
    int fd = 2;
    bool is_terminal = false;      // see detect_terminal()
    int columns = 80;              // of the terminal; 0: asked at each redraw, so that a resize is followed
    bool unicode = true;           // the bar of block characters, else of '#'
    double redraw_seconds = 0.1;   // on a terminal
    double line_seconds = 10;      // elsewhere
    std::string unit = "samples";  // what `done` and `total` count
    Clock* clock = &Clock::real();
  };
  explicit Progress(Options options);
  ~Progress();

  void start(const std::string& label, uint64_t done, uint64_t total);
  // detail: short free text such as "epoch 1/2  loss 0.132  lr 0.001".
  void update(uint64_t done, const std::string& detail);
  // Prints a line of text without tearing the bar.
  void note(const std::string& line);
  void finish();  // leaves the last state on the screen and moves to a new line

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Options for this process's stderr: a terminal that is not dumb (TERM), COLUMNS and the locale honoured. There are no
// colours, so NO_COLOR has nothing to turn off.
Progress::Options detect_terminal();

}  // namespace skytrain
