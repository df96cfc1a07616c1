// skytrain/launch/line_splitter.h
//
// A stream of bytes as whole lines, in bounded memory. Not thread-safe.

#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace skytrain::launch {

class LineSplitter {
 public:
  static constexpr size_t kLongestLine = size_t{64} << 10;  // bytes; a longer one is given out in pieces of that size
  static constexpr double kBarSeconds = 5;                  // between two states of a progress bar

  using Emit = std::function<void(std::string_view line)>;  // without its end of line
  explicit LineSplitter(Emit emit) : emit_(std::move(emit)) {}

  // A line ends with \n or \r\n. What ends with a lone \r is a progress bar's: each state overwrites the one before,
  // and one every kBarSeconds is given out. seconds: of a monotonic clock.
  void feed(std::string_view bytes, double seconds);
  // The rest, which had no end of line.
  void finish();

 private:
  void end_of_line();
  void overwrite(double seconds);
  void add(std::string_view text);

  Emit emit_;
  std::string line_;
  bool carriage_return_ = false;  // the last byte was \r
  bool cut_ = false;              // the line's beginning was given out already
  double last_bar_ = -kBarSeconds;
};

}  // namespace skytrain::launch
