// skytrain/proto/channel.h
//
// Frames between skytrain and skytrain-worker over a connected stream socket: u32 little-endian length, then that many
// bytes of JSON (one object). At most 64 MiB a frame.
//
// Any thread may send; one thread at a time receives. closed() may be asked from any thread.

#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "skytrain/base/json.h"
#include "skytrain/base/process.h"

namespace skytrain::proto {

inline constexpr uint32_t kMaxFrameBytes = 64u << 20;

class Channel {
 public:
  explicit Channel(Fd fd);

  // False when the peer has gone (EPIPE, ECONNRESET); never raises SIGPIPE. Waits while the peer is slow to read.
  // Bytes that are not UTF-8 are replaced. Throws Error(kInternal) when the message is longer than a frame may be.
  bool send(const Json& message);
  // Whether a small message would be taken at once: a peer that is stopped must not hold up whoever only tells how far
  // it is.
  bool writable() const;
  // Waits up to `seconds` (forever when negative) for a whole frame. nullopt: time-out, or the peer has gone
  // (closed()). Frames that the peer sent before it went are still delivered. One read may bring several frames, so a
  // caller that polls fd() must call receive(0) until it gives nothing. Throws Error(kInternal) on a frame that is too
  // long or no JSON object; the stream is of no use after that.
  std::optional<Json> receive(double seconds);
  // The peer has gone: a send failed or the end of the stream was read.
  bool closed() const { return closed_; }
  int fd() const { return fd_.get(); }

 private:
  std::optional<Json> next_buffered_frame();

  Fd fd_;
  std::mutex send_mutex_;
  std::string buffer_;  // received, from consumed_ on not yet delivered
  size_t consumed_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace skytrain::proto
