// skytrain/launch/node_messages.h
//
// What the agents of a job say to each other once both have proved that they have its key (authentication.h): one JSON
// object a frame, {"type": …}. A node is one agent with its ranks; the head is node rank 0's agent.
//
//   member  join, then for each attempt: failing (at once), ended, settled; alive every second; notice, abort
//   head    welcome | refused; start, stop, ending, all_ended for each attempt; alive, note; notice, abort; end
//
// Times are durations: clocks of two machines are never compared.

#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "skytrain/launch/job.h"

namespace skytrain::launch {

inline constexpr size_t kNodeFrameBytes = 256 << 10;

namespace message {

struct Join {
  std::string host;     // of this machine
  std::string command;  // hash of the program's words
  int nodes = 1;        // --nodes
  int ranks = 1;        // --nproc, of this node
  int node_rank = -1;   // asked for, or had before; -1: any
  bool asked = false;   // --node-rank was given
  int restarts = 0;     // that it has seen: a head that was replaced goes on counting
  std::string resume;   // node 0's newest committed checkpoint
};

// The first failure of an attempt: of a rank, of starting ranks, or of a node.
struct Failing {
  int attempt = 0;
  Failure failure;
  double seconds_ago = 0;
};

struct Ended {  // all ranks of this node
  int attempt = 0;
  bool orderly = true;  // each with 0 or 75
};

struct Settled {  // all checkpoints of the attempt are committed
  int attempt = 0;
  std::string resume;
};

struct NoticeGiven {
  std::string reason;        // "SIGTERM", …
  double seconds_left = -1;  // until SIGKILL; -1: nobody has announced it (Ctrl-C)
};

struct Abort {};
struct Alive {};

struct Welcome {
  double node_timeout = 0;  // seconds without a word after which the other side is lost
};

struct Refused {
  std::string what, hint;
};

struct Note {
  std::string text;
};

struct Start {
  int attempt = 0;
  int node_rank = 0, nodes = 1;
  int first_rank = 0, world_size = 1;
  std::string master_address;
  int master_port = 0;
  std::string run_id;
  int restarts = 0, max_restarts = 0;
  std::string resume;  // "": none
};

struct Stop {  // your ranks are to end: this failed elsewhere
  int attempt = 0;
  Failure failure;
};

struct Ending {};  // after a notice: the ranks of a node have ended

struct AllEnded {
  int attempt = 0;
  bool orderly = true;
};

struct End {
  int kind = 0;  // JobEnd::Kind
  int restarts = 0;
  bool has_failure = false;
  Failure failure;
};

}  // namespace message

using NodeMessage =
    std::variant<message::Join, message::Failing, message::Ended, message::Settled, message::NoticeGiven,
                 message::Abort, message::Alive, message::Welcome, message::Refused, message::Note, message::Start,
                 message::Stop, message::Ending, message::AllEnded, message::End>;

std::string encode(const NodeMessage& message);
// Throws Error(kEnvironment) for what is none.
NodeMessage decode_node_message(std::string_view text);

}  // namespace skytrain::launch
