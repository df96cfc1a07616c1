#include "skytrain/launch/frame_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr size_t kHeaderBytes = 4, kReadBytes = 64 << 10;

}  // namespace

FrameStream::FrameStream(Fd fd, size_t longest_frame) : fd_(std::move(fd)), longest_(longest_frame) {}

bool FrameStream::read_some() {
  char bytes[kReadBytes];
  ssize_t n;
  do {
    n = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n > 0) in_.append(bytes, static_cast<size_t>(n));
  if (n > 0 || (n < 0 && errno == EAGAIN)) return true;
  if (why_.empty()) why_ = n == 0 ? "it closed the connection" : std::strerror(errno);
  return false;
}

std::optional<std::string> FrameStream::next() {
  if (in_.size() < kHeaderBytes) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<unsigned char>(in_[i])) << (8 * i);
  }
  if (length > longest_) {
    throw Error(ErrorKind::kEnvironment, "",
                str("a frame announces ", length, " bytes, at most ", longest_, " are allowed"));
  }
  if (in_.size() - kHeaderBytes < length) return std::nullopt;
  std::string frame = in_.substr(kHeaderBytes, length);
  in_.erase(0, kHeaderBytes + length);
  return frame;
}

void FrameStream::push(std::string_view frame) {
  for (size_t i = 0; i < kHeaderBytes; ++i) out_ += static_cast<char>(frame.size() >> (8 * i) & 0xff);
  out_ += frame;
}

bool FrameStream::write_some() {
  while (!out_.empty()) {
    const ssize_t n = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      out_.erase(0, static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      if (why_.empty()) why_ = std::strerror(errno);
      return false;
    }
  }
  return true;
}

}  // namespace skytrain::launch
