// skytrain/launch/node_options.h
//
// What makes a job one of several machines.

#pragma once
#include <string>

#include "skytrain/base/socket.h"
#include "skytrain/launch/authentication.h"

namespace skytrain::launch {

inline constexpr int kNodePort = 29400;  // as torchrun's rendezvous

struct NodeOptions {
  int nodes = 2;
  HostPort join;                                 // where the head is
  int node_rank = -1;                            // -1: any; 0 is the head
  std::string interface;                         // network interface to use; "": what the system chooses
  double join_timeout = 600, node_timeout = 30;  // seconds
  JobKey key;
};

}  // namespace skytrain::launch
