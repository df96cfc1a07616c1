#include "skytrain/proto/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::proto {
namespace {

constexpr size_t kHeaderBytes = 4;
constexpr size_t kReadBytes = 64 << 10;

bool peer_has_gone(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

// Waits until `events` or a hang-up; false on time-out. seconds < 0: forever.
bool wait_for(int fd, short events, double seconds) {
  const double deadline = Clock::real().monotonic_seconds() + seconds;
  while (true) {
    int milliseconds = -1;
    if (seconds >= 0) {
      const double left = std::max(0.0, deadline - Clock::real().monotonic_seconds());
      milliseconds = static_cast<int>(std::min(std::ceil(left * 1000), 1e9));
    }
    pollfd poll_fd{fd, events, 0};
    const int ready = ::poll(&poll_fd, 1, milliseconds);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR)
      throw Error(ErrorKind::kInternal, "", str("poll on the worker's socket: ", std::strerror(errno)));
  }
}

uint32_t frame_length(const char* header) {
  uint32_t length = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  return length;
}

}  // namespace

Channel::Channel(Fd fd) : fd_(std::move(fd)) {}

bool Channel::send(const Json& message) {
  const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (body.size() > kMaxFrameBytes) {
    throw Error(ErrorKind::kInternal, "", str("a message of ", body.size(), " bytes is longer than a frame may be"));
  }
  std::string frame(kHeaderBytes, '\0');
  for (size_t i = 0; i < kHeaderBytes; ++i) frame[i] = static_cast<char>(body.size() >> (8 * i) & 0xff);
  frame += body;

  const std::lock_guard lock(send_mutex_);
  size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t n = ::send(fd_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      wait_for(fd_.get(), POLLOUT, -1);
    } else if (peer_has_gone(errno)) {
      closed_ = true;
      return false;
    } else if (errno != EINTR) {
      throw Error(ErrorKind::kInternal, "", str("send on the worker's socket: ", std::strerror(errno)));
    }
  }
  return true;
}

bool Channel::writable() const {
  pollfd poll_fd{fd_.get(), POLLOUT, 0};
  return ::poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0;
}

std::optional<Json> Channel::next_buffered_frame() {
  const size_t available = buffer_.size() - consumed_;
  if (available < kHeaderBytes) return std::nullopt;
  const uint32_t length = frame_length(buffer_.data() + consumed_);
  if (length > kMaxFrameBytes) {
    throw Error(ErrorKind::kInternal, "",
                str("a frame announces ", length, " bytes, at most ", kMaxFrameBytes, " are allowed"));
  }
  if (available - kHeaderBytes < length) return std::nullopt;
  const std::string_view body(buffer_.data() + consumed_ + kHeaderBytes, length);
  Json message;
  try {
    message = parse_json(body, "");
  } catch (const Error& error) {
    throw Error(ErrorKind::kInternal, "", str("a frame is ", error.problem(), ": ", printable(body, 60)));
  }
  if (!message.is_object()) {
    throw Error(ErrorKind::kInternal, "", str("a frame is no JSON object: ", printable(body, 60)));
  }
  consumed_ += kHeaderBytes + length;
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  }
  return message;
}

std::optional<Json> Channel::receive(double seconds) {
  const double deadline = Clock::real().monotonic_seconds() + seconds;
  while (true) {
    if (auto message = next_buffered_frame()) return message;
    const double left = seconds < 0 ? -1 : std::max(0.0, deadline - Clock::real().monotonic_seconds());
    if (!wait_for(fd_.get(), POLLIN, left)) return std::nullopt;

    buffer_.erase(0, consumed_);
    consumed_ = 0;
    const size_t old_size = buffer_.size();
    buffer_.resize(old_size + kReadBytes);
    const ssize_t n = ::recv(fd_.get(), buffer_.data() + old_size, kReadBytes, MSG_DONTWAIT);
    const int error = errno;
    buffer_.resize(old_size + (n > 0 ? static_cast<size_t>(n) : 0));
    if (n == 0 || (n < 0 && peer_has_gone(error))) {
      closed_ = true;
      return std::nullopt;
    }
    if (n < 0 && error != EINTR && error != EAGAIN) {
      throw Error(ErrorKind::kInternal, "", str("recv on the worker's socket: ", std::strerror(error)));
    }
  }
}

}  // namespace skytrain::proto
