// skytrain/base/process_tree.h
//
// What a process has started, directly or not, found through /proc. Names of programs play no part. Linux only.
// Thread-safe.

#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace skytrain {

// Orphans of this process's descendants become its own children, also those that called setsid or forked twice
// (PR_SET_CHILD_SUBREAPER). Not inherited by fork, kept by exec. Throws Error(kEnvironment).
void become_subreaper();

// Direct children of `pid`, zombies too; empty when there is no such process.
std::vector<pid_t> children_of(pid_t pid);
// All that descend from `pid`, parents before children; zombies have no descendants, but are listed themselves.
std::vector<pid_t> descendants_of(pid_t pid);
bool is_zombie(pid_t pid);       // false when it does not exist
std::string name_of(pid_t pid);  // the kernel's, up to 15 bytes; "" when it does not exist

struct Killed {
  std::vector<std::string> names;  // of those that a signal was sent to, once each process: "python3"
  std::vector<pid_t> left;         // that did not end in time: stuck in the kernel
};

// Sends SIGKILL to all descendants of this process, and to those that they start meanwhile, until none is left or
// `seconds` have passed. The caller is a subreaper, or orphans get away. reap: called for each child that has ended and
// has to be waited for; it does so. spared: children of this process that are left alone, with all below them.
Killed kill_descendants(double seconds, const std::function<void(pid_t)>& reap, const std::vector<pid_t>& spared = {});

// waitpid() of one that has ended; its status is dropped.
void reap_child(pid_t pid);
// Children of this process that have ended and were not waited for yet.
std::vector<pid_t> ended_children();

}  // namespace skytrain
