// skytrain/launch/head_link.h
//
// A node's connection to the head, kept alive by a thread of its own, so that a main thread that is busy copying a
// checkpoint or killing processes does not look dead. Any thread may call.

#pragma once
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "skytrain/launch/authentication.h"
#include "skytrain/launch/frame_stream.h"
#include "skytrain/launch/node_messages.h"

namespace skytrain::launch {

// Wakes a thread that polls it. Thread-safe.
class WakeUp {
 public:
  WakeUp();  // throws Error(kEnvironment)
  int fd() const { return fd_.get(); }
  void ring();
  void quiet();

 private:
  Fd fd_;
};

class HeadLink {
 public:
  // watches: whether silence of the other side counts, once it has said for how long (Welcome).
  HeadLink(FrameStream stream, Seals seals, bool watches);
  HeadLink(const HeadLink&) = delete;
  HeadLink& operator=(const HeadLink&) = delete;
  ~HeadLink();  // what was to be sent is, within a second

  int fd() const { return news_.fd(); }  // readable: take() may have something, or lost() is set
  // The oldest message that has come; nullopt: none now, and fd() is quiet until there is one.
  std::optional<NodeMessage> take();
  void send(const NodeMessage& message);
  // Why the head can't be heard any more; "" while it can. Messages that came before are taken first.
  std::string lost();

 private:
  void run();
  void receive();
  void lose(const std::string& why);

  FrameStream stream_;
  Seals seals_;
  const bool watches_;
  double node_timeout_ = 0;  // of the thread, as the next one
  double last_heard_ = 0;
  WakeUp news_, work_;
  std::mutex mutex_;
  std::deque<NodeMessage> received_;
  std::deque<std::string> to_send_;
  std::string lost_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace skytrain::launch
