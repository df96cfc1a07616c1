// skytrain/launch/head.h
//
// The head of a job on several machines: a thread that listens, lets in who has the key, and carries messages between
// the nodes and the Coordinator. What strangers can do to it is bounded: 64 connections that have not yet proved
// themselves (the oldest one goes for a new one), ten seconds for each, frames of 1 KiB.

#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/launch/authentication.h"
#include "skytrain/launch/coordinator.h"
#include "skytrain/launch/frame_stream.h"
#include "skytrain/launch/head_link.h"

namespace skytrain::launch {

class Head {
 public:
  struct Options {
    Coordinator::Options coordinator;
    JobKey key;
    Fd listener;
    double handshake_seconds = 10;
    size_t most_strangers = 64;
  };
  Head(Options options, message::Join local);
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;
  // When the job has ended: all have five seconds to hear of it. Else connections are closed at once.
  ~Head();

  std::unique_ptr<HeadLink> local_link();  // once

 private:
  struct Peer;
  void run();
  void wait();
  void accept_all();
  void read(int connection, Peer& peer);
  void greet(int connection, Peer& peer, const std::string& frame);
  void drop_late_strangers();
  void deliver();
  void write_all();
  void tell_once(const std::string& who, const std::string& what);
  double now() const { return Clock::real().monotonic_seconds(); }

  Options options_;
  Coordinator coordinator_;
  WakeUp wake_;
  std::unique_ptr<FrameStream> local_end_;
  std::unique_ptr<Seals> local_seals_;
  std::map<int, std::unique_ptr<Peer>> peers_;
  std::set<std::string> told_;
  int next_connection_ = 1;
  double deaf_until_ = 0;  // no descriptors are left: the listener is not asked
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace skytrain::launch
