#include "skytrain/launch/output_queue.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>

#include "skytrain/base/clock.h"

namespace skytrain::launch {

void OutputQueue::add(int fd, std::string_view text) {
  if (text.empty()) return;
  bytes_ += text.size();
  if (!pieces_.empty() && pieces_.back().fd == fd && pieces_.back().text.size() < 65536) {
    pieces_.back().text += text;
  } else {
    pieces_.push_back({fd, std::string(text), 0});
  }
}

void OutputQueue::write_some() {
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    pollfd poll_fd{piece.fd, POLLOUT, 0};
    if (::poll(&poll_fd, 1, 0) <= 0) return;
    // A pipe that poll() calls writable takes PIPE_BUF bytes at once.
    const size_t size = std::min<size_t>(piece.text.size() - piece.written, PIPE_BUF);
    const ssize_t n = ::write(piece.fd, piece.text.data() + piece.written, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const size_t gone = n < 0 ? piece.text.size() - piece.written : static_cast<size_t>(n);
    piece.written += gone;
    bytes_ -= gone;
    if (piece.written == piece.text.size()) pieces_.pop_front();
  }
}

void OutputQueue::flush(double seconds) {
  const double deadline = Clock::real().monotonic_seconds() + seconds;
  while (true) {
    write_some();
    const double left = deadline - Clock::real().monotonic_seconds();
    if (pieces_.empty() || left <= 0) return;
    pollfd poll_fd{pieces_.front().fd, POLLOUT, 0};
    ::poll(&poll_fd, 1, static_cast<int>(std::ceil(left * 1000)));
  }
}

}  // namespace skytrain::launch
