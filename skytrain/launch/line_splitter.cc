#include "skytrain/launch/line_splitter.h"

#include <algorithm>

namespace skytrain::launch {

void LineSplitter::feed(std::string_view bytes, double seconds) {
  while (!bytes.empty()) {
    if (carriage_return_) {
      carriage_return_ = false;
      if (bytes.front() != '\n' && bytes.front() != '\r') overwrite(seconds);
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    add(bytes.substr(0, end));
    if (end == bytes.size()) return;
    if (bytes[end] == '\n') {
      end_of_line();
    } else {
      carriage_return_ = true;
    }
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  carriage_return_ = false;
  if (!line_.empty()) end_of_line();
}

void LineSplitter::end_of_line() {
  if (!cut_ || !line_.empty()) emit_(line_);
  line_.clear();
  cut_ = false;
}

void LineSplitter::overwrite(double seconds) {
  if (!line_.empty() && seconds - last_bar_ >= kBarSeconds) {
    last_bar_ = seconds;
    emit_(line_);
  }
  line_.clear();
  cut_ = false;
}

void LineSplitter::add(std::string_view text) {
  while (line_.size() + text.size() > kLongestLine) {
    const size_t room = kLongestLine - line_.size();
    line_.append(text.substr(0, room));
    text.remove_prefix(room);
    emit_(line_);
    line_.clear();
    cut_ = true;
  }
  line_.append(text);
}

}  // namespace skytrain::launch
