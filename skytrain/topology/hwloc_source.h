// skytrain/topology/hwloc_source.h
//
// Sockets, NUMA nodes, cores and PCI devices by hwloc 2 (https://www.open-mpi.org/projects/hwloc/). One thread at a
// time: the environment is changed while hwloc starts, so that it loads no plug-ins of the machine.

#pragma once
#include <string>

#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// This machine. Cores are those that the process may use: allowed by the cpuset of its container and by its affinity.
// Throws Error(kEnvironment) when hwloc can't look at it at all.
Topology read_this_system();
// An export of lstopo (`lstopo machine.xml`), of hwloc 2. content: the file's. Throws Error(kData).
Topology read_hwloc_xml(const std::string& content, const std::string& where);
// hwloc's synthetic description: "pack:2 numa:1 core:16 pu:2". Throws Error(kUsage).
Topology read_synthetic(const std::string& description);

}  // namespace skytrain::topology
