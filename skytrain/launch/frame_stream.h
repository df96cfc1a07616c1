// skytrain/launch/frame_stream.h
//
// Frames over a non-blocking stream socket: u32 little-endian length, then so many bytes, as proto/channel.h has them.
// Nothing here waits. Belongs to one thread.

#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "skytrain/base/process.h"

namespace skytrain::launch {

class FrameStream {
 public:
  explicit FrameStream(Fd fd, size_t longest_frame);

  void set_longest_frame(size_t bytes) { longest_ = bytes; }
  const Fd& socket() const { return fd_; }
  int fd() const { return fd_.get(); }

  // Reads what is there, a bounded amount. false: the peer has gone, or why() tells what else; frames that came before
  // are still there.
  bool read_some();
  // Throws Error(kEnvironment) when the next frame is too long; the stream is of no use after that.
  std::optional<std::string> next();

  void push(std::string_view frame);
  // Writes what goes without waiting; false: the peer has gone.
  bool write_some();
  bool wants_write() const { return !out_.empty(); }
  size_t waiting_bytes() const { return out_.size(); }
  // "it closed the connection", or the system's text.
  const std::string& why() const { return why_; }

 private:
  Fd fd_;
  size_t longest_;
  std::string in_, out_, why_;
};

}  // namespace skytrain::launch
