// skytrain/launch/node_session.h
//
// The part of this machine's agent in a job on several: it joins, waits for each attempt to begin and to end
// everywhere, and comes back when the head was lost. On the head it holds the Head too. Belongs to one thread.

#pragma once
#include <memory>
#include <optional>
#include <string>

#include "skytrain/launch/head.h"
#include "skytrain/launch/head_link.h"
#include "skytrain/launch/job.h"
#include "skytrain/launch/meeting.h"
#include "skytrain/launch/node_messages.h"
#include "skytrain/launch/output_queue.h"

namespace skytrain::launch {

class NodeSession {
 public:
  // Finds the head or becomes it; left() when a signal came meanwhile. REQUIRES: options.nodes. Throws as meet().
  NodeSession(const JobOptions& options, OutputQueue& queue);
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;
  ~NodeSession();

  bool is_head() const { return is_head_; }
  bool left() const { return !is_head_ && !link_; }
  // resume: the head's newest committed checkpoint, "": none.
  void join(const std::string& resume);
  // nullopt: the job has ended, and so. Throws Error when the head refuses us.
  std::optional<message::Start> await_start(JobEnd& end);
  HeadLink& link() { return *link_; }
  // Of the attempt: what this node has to say of it, then whether it went orderly on all nodes. noticed: a notice has
  // come before.
  bool await_all_ended(const message::Ended& ended, bool& noticed);
  void settled(const std::string& resume);

 private:
  // What a signal asks for is passed on once.
  void follow_signals(bool& noticed);
  void wait(double seconds);
  bool rest(double seconds);
  void note_lost_head(JobEnd& end);
  bool come_back();

  const JobOptions& options_;
  const NodeOptions& node_;
  OutputQueue& queue_;
  bool is_head_ = false;
  std::string address_;
  Fd listener_;
  std::unique_ptr<Head> head_;
  std::unique_ptr<HeadLink> link_;
  std::optional<message::Start> last_start_;
  std::optional<std::string> lost_;
  bool told_notice_ = false, told_abort_ = false;
  double abort_deadline_ = 0;
};

}  // namespace skytrain::launch
