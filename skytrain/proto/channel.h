// skytrain/proto/channel.h
//
// Frames between skytrain and skytrain-worker over a connected stream socket: u32 little-endian length, then that many
// bytes of JSON (one object). At most 64 MiB a frame.

#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "skytrain/base/json.h"
#include "skytrain/base/process.h"

namespace skytrain::proto {

class Channel {
 public:
  explicit Channel(Fd fd);

  // Thread-safe. False when the peer has gone (EPIPE, ECONNRESET); never raises SIGPIPE.
  bool send(const Json& message);
  // Waits up to `seconds` (forever when negative) for a whole frame. nullopt: time-out, or the peer has gone (closed()).
  // Throws Error(kInternal) on a frame that is too long or no JSON object. One reader at a time.
  std::optional<Json> receive(double seconds);
  bool closed() const { return closed_; }
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  std::mutex send_mutex_;
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace skytrain::proto
