// skytrain/launch/meeting.h
//
// How the agents of a job find each other: one listens where --join says and becomes the head, the others connect to
// it. Belongs to one thread.

#pragma once
#include <functional>
#include <memory>
#include <string>

#include "skytrain/launch/head_link.h"
#include "skytrain/launch/node_options.h"

namespace skytrain::launch {

// One of the two.
struct Met {
  Fd listener;          // we are the head
  std::string address;  // where it listens
  std::unique_ptr<HeadLink> link;
};

struct MeetingHooks {
  std::function<void(const std::string&)> say;
  // Waits so long for something (a signal, output that can be written); true: give up, neither is set.
  std::function<bool(double seconds)> rest;
};

// The head is node rank 0 if that was given; else the machine that HOST names: whoever can listen at it. All others try
// for join_timeout to reach it. may_head: false for one that had a head and lost it.
// Throws Error(kUsage) when the head has another key, Error(kEnvironment) when what listens there is no skytrain run of
// this version, when node rank 0 cannot listen, and when nobody answered in time.
Met meet(const NodeOptions& options, bool may_head, const MeetingHooks& hooks);

}  // namespace skytrain::launch
