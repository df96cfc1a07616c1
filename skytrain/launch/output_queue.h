// skytrain/launch/output_queue.h
//
// Text on its way to stdout and stderr, in one order. Nothing here blocks: a terminal that was stopped or a full pipe
// must not keep the agent from passing on a notice. Belongs to one thread.

#pragma once
#include <deque>
#include <string>
#include <string_view>

namespace skytrain::launch {

class OutputQueue {
 public:
  static constexpr size_t kFullBytes = size_t{1} << 20;  // from here on ranks wait, as they would for a slow terminal

  // text: whole lines.
  void add(int fd, std::string_view text);
  void say(std::string_view line) { add(2, std::string("skytrain: ").append(line) + "\n"); }  // a line of ours

  bool empty() const { return pieces_.empty(); }
  bool full() const { return bytes_ >= kFullBytes; }
  int fd() const { return pieces_.empty() ? -1 : pieces_.front().fd; }  // to poll for POLLOUT
  // Writes what goes without waiting. A reader who has gone, or any other failure to write, drops the text.
  void write_some();
  // Writes all, for at most so long.
  void flush(double seconds);

 private:
  struct Piece {
    int fd;
    std::string text;
    size_t written = 0;
  };
  std::deque<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace skytrain::launch
