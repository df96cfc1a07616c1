// skytrain/topology/binding.h
//
// Which cores, NUMA node and NIC each rank of a machine should have. Pure: a function of its arguments.

#pragma once
#include <string>
#include <vector>

#include "skytrain/topology/topology.h"

namespace skytrain::topology {

struct RankBinding {
  int rank = 0;
  int gpu = -1;                 // index into gpus; -1: none
  int nic = -1;                 // index into nics; -1: none
  std::vector<int> numa_nodes;  // of its cores, as the operating system numbers them; empty: not known
  int cores = 0;
  CpuList cpus;  // of those cores; empty: it gets none of its own, and is better left unbound
};

struct BindingPlan {
  std::vector<RankBinding> ranks;
  std::vector<std::string> notes;  // where the plan is not what one would want, and why
};

// A rank a GPU; without GPUs one a NUMA node whose cores may be used; at least 1.
int default_ranks(const Topology& topology);

// Rank r drives GPU r (modulo their number). Ranks whose GPUs are near the same cores share those in equal parts of
// neighbouring cores; what is left over goes to the first of them. Ranks without GPUs are dealt to the NUMA nodes by
// their cores. No core is given twice, and all hyperthreads of a core go to one rank; a rank whose near cores are used
// up or cut off gets some of the others, and when there are fewer cores than ranks, the last ranks get none; both are
// in `notes`. The NIC is the nearest, RDMA before others and those whose ports are down left out, the one with the
// fewest ranks where several are as near. Throws Error(kUsage) when ranks is not within 1..kMostRanks.
constexpr int kMostRanks = 4096;
BindingPlan plan_binding(const Topology& topology, int ranks);

}  // namespace skytrain::topology
