// skytrain/topology/this_machine.h
//
// The machine that the program runs on: hwloc, the NVIDIA driver and the kernel's files put together. One thread at a
// time.

#pragma once
#include <string>
#include <string_view>

#include "skytrain/topology/nccl_advice.h"
#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// Throws Error(kEnvironment) as read_this_system does; everything else that can't be told is in `unknown`.
Topology read_this_machine();

// interface: taken for NCCL_SOCKET_IFNAME in place of the default route's, unless "". Throws Error(kUsage) when no
// interface of this machine is called so.
Surroundings read_surroundings(std::string_view interface = "");

// Port states, link layer and states of interfaces from class/infiniband and class/net below `sys`.
void add_nic_states(Topology& topology, const std::string& sys);

}  // namespace skytrain::topology
