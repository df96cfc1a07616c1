#include "skytrain/topology/binding.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

using Indices = std::vector<size_t>;  // into Topology::cores, ascending: neighbours beside each other

// Ranks that want the same cores.
struct Group {
  Indices cores;
  std::vector<int> ranks;
};

Indices all_cores(const Topology& topology) {
  Indices all(topology.cores.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

Indices cores_near(const Topology& topology, const Gpu& gpu) {
  Indices near;
  for (size_t i = 0; i < topology.cores.size(); ++i) {
    const Core& core = topology.cores[i];
    if (gpu.near.empty() ? gpu.numa_node >= 0 && core.numa_node == gpu.numa_node : overlap(core.cpus, gpu.near)) {
      near.push_back(i);
    }
  }
  return near;
}

std::vector<Group> groups_by_gpu(const Topology& topology, int ranks, std::vector<std::string>& notes) {
  std::map<Indices, std::vector<int>> by_cores;
  std::set<size_t> told;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t index = static_cast<size_t>(rank) % topology.gpus.size();
    const Gpu& gpu = topology.gpus[index];
    Indices near = cores_near(topology, gpu);
    if (near.empty()) {
      near = all_cores(topology);
      if (!topology.cores.empty() && told.insert(index).second) {
        notes.push_back(gpu.near.empty() && gpu.numa_node < 0
                            ? gpu.name + ": which cores are near it is not known; any are taken"
                            : gpu.name + ": none of the cores near it" +
                                  (gpu.numa_node < 0 ? "" : str(" (NUMA node ", gpu.numa_node, ")")) +
                                  " may be used here; others are taken");
      }
    }
    by_cores[near].push_back(rank);
  }
  std::vector<Group> groups;
  groups.reserve(by_cores.size());
  for (auto& [cores, members] : by_cores) groups.push_back({cores, members});
  return groups;
}

// Ranks to NUMA nodes, by how many cores each has (the largest remainders get what is left).
std::vector<Group> groups_by_node(const Topology& topology, int ranks) {
  std::map<int, Indices> by_node;
  for (size_t i = 0; i < topology.cores.size(); ++i) by_node[topology.cores[i].numa_node].push_back(i);
  std::vector<Indices> nodes;
  nodes.reserve(by_node.size());
  for (auto& [node, cores] : by_node) nodes.push_back(cores);
  std::vector<Group> groups;
  const size_t count = nodes.size();
  const auto number = static_cast<size_t>(ranks);
  if (number < count) {  // a rank takes whole nodes
    for (size_t rank = 0; rank < number; ++rank) {
      Group group{{}, {static_cast<int>(rank)}};
      for (size_t n = rank * count / number; n < (rank + 1) * count / number; ++n) {
        group.cores.insert(group.cores.end(), nodes[n].begin(), nodes[n].end());
      }
      std::sort(group.cores.begin(), group.cores.end());
      groups.push_back(std::move(group));
    }
    return groups;
  }
  const size_t total = topology.cores.size();
  std::vector<size_t> share(count), order(count);
  for (size_t n = 0; n < count; ++n) share[n] = number * nodes[n].size() / total;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return number * nodes[a].size() % total > number * nodes[b].size() % total;
  });
  const size_t dealt = std::accumulate(share.begin(), share.end(), size_t{0});
  for (size_t i = 0; i < number - dealt; ++i) ++share[order[i % count]];
  int rank = 0;
  for (size_t n = 0; n < count; ++n) {
    Group group{nodes[n], {}};
    for (size_t i = 0; i < share[n]; ++i) group.ranks.push_back(rank++);
    if (!group.ranks.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

class Dealer {
 public:
  Dealer(const Topology& topology, BindingPlan& plan)
      : topology_(topology), plan_(plan), given_(plan.ranks.size()), taken_(topology.cores.size(), false) {}

  void deal(std::vector<Group> groups) {
    // Few cores first: those who could take others too leave them.
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.cores.size() < b.cores.size(); });
    const size_t fair = std::max<size_t>(1, topology_.cores.size() / plan_.ranks.size());
    for (const Group& group : groups) {
      const bool alone = std::none_of(groups.begin(), groups.end(), [&](const Group& other) {
        Indices both;
        std::set_intersection(group.cores.begin(), group.cores.end(), other.cores.begin(), other.cores.end(),
                              std::back_inserter(both));
        return &other != &group && !both.empty();
      });
      share(group, alone ? topology_.cores.size() : fair);
    }
    std::vector<std::string> far, none;
    for (size_t rank = 0; rank < given_.size(); ++rank) {
      if (!given_[rank].empty()) continue;
      (take_elsewhere(rank) ? far : none).push_back(std::to_string(rank));
    }
    for (size_t rank = 0; rank < given_.size(); ++rank) describe(given_[rank], plan_.ranks[rank]);
    if (!far.empty()) {
      plan_.notes.push_back(
          str("the cores near the device of rank ", join(far, ", "), " are used up: one elsewhere is taken"));
    }
    if (!none.empty()) {
      plan_.notes.push_back(str("there are ", topology_.cores.size(), " cores for ", plan_.ranks.size(),
                                " ranks: none is left for rank ", join(none, ", "), "; better not to bind any"));
    }
  }

 private:
  Indices free_of(const Indices& cores) const {
    Indices free;
    std::copy_if(cores.begin(), cores.end(), std::back_inserter(free), [&](size_t i) { return !taken_[i]; });
    return free;
  }

  void share(const Group& group, size_t most) {
    const Indices free = free_of(group.cores);
    const size_t members = group.ranks.size();
    auto next = free.begin();
    for (size_t i = 0; i < members; ++i) {
      const size_t size = std::min(most, free.size() / members + (i < free.size() % members ? 1 : 0));
      const auto end = next + static_cast<std::ptrdiff_t>(size);
      given_[static_cast<size_t>(group.ranks[i])].assign(next, end);
      std::for_each(next, end, [&](size_t core) { taken_[core] = true; });
      next = end;
    }
  }

  // A core that nobody has, else the last one of the rank that has most, if it keeps one.
  bool take_elsewhere(size_t rank) {
    const Indices free = free_of(all_cores(topology_));
    if (!free.empty()) {
      given_[rank] = {free.front()};
      taken_[free.front()] = true;
      return true;
    }
    const auto most = std::max_element(given_.begin(), given_.end(),
                                       [](const Indices& a, const Indices& b) { return a.size() < b.size(); });
    if (most->size() < 2) return false;
    given_[rank] = {most->back()};
    most->pop_back();
    return true;
  }

  void describe(const Indices& cores, RankBinding& rank) const {
    std::set<int> nodes;
    for (const size_t i : cores) {
      const Core& core = topology_.cores[i];
      rank.cpus = united(rank.cpus, core.cpus);
      if (core.numa_node >= 0) nodes.insert(core.numa_node);
    }
    rank.cores = static_cast<int>(cores.size());
    rank.numa_nodes.assign(nodes.begin(), nodes.end());
  }

  const Topology& topology_;
  BindingPlan& plan_;
  std::vector<Indices> given_;  // by rank
  std::vector<bool> taken_;     // by core
};

// How far a NIC is from a rank: of its GPU as the table says, else whether it is on a node of its cores.
Link distance(const Topology& topology, const RankBinding& rank, size_t nic) {
  if (rank.gpu >= 0) return topology.to_nic(static_cast<size_t>(rank.gpu), nic).link;
  const int node = topology.nics[nic].numa_node;
  if (node < 0 || rank.numa_nodes.empty()) return Link::kUnknown;
  const bool near = std::find(rank.numa_nodes.begin(), rank.numa_nodes.end(), node) != rank.numa_nodes.end();
  return near ? Link::kNode : Link::kSys;
}

void choose_nics(const Topology& topology, BindingPlan& plan) {
  const auto usable = [&](size_t nic, bool rdma) {
    const Nic& each = topology.nics[nic];
    return each.rdma == rdma && each.active.value_or(true);
  };
  std::vector<int> ranks_of(topology.nics.size(), 0);
  for (const bool rdma : {true, false}) {
    Indices candidates;
    for (size_t nic = 0; nic < topology.nics.size(); ++nic) {
      if (usable(nic, rdma)) candidates.push_back(nic);
    }
    if (candidates.empty()) continue;
    for (RankBinding& rank : plan.ranks) {
      const auto chosen = std::min_element(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
        return std::pair(distance(topology, rank, a), ranks_of[a]) <
               std::pair(distance(topology, rank, b), ranks_of[b]);
      });
      rank.nic = static_cast<int>(*chosen);
      ++ranks_of[*chosen];
    }
    return;
  }
}

}  // namespace

int default_ranks(const Topology& topology) {
  if (!topology.gpus.empty()) return static_cast<int>(topology.gpus.size());
  std::set<int> nodes;
  for (const Core& core : topology.cores) nodes.insert(core.numa_node);
  return std::max(1, static_cast<int>(nodes.size()));
}

BindingPlan plan_binding(const Topology& topology, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    throw Error(ErrorKind::kUsage, "--ranks", str(ranks, " is not within 1 to ", kMostRanks));
  }
  BindingPlan plan;
  for (int rank = 0; rank < ranks; ++rank) {
    plan.ranks.push_back({.rank = rank});
    if (!topology.gpus.empty()) plan.ranks.back().gpu = rank % static_cast<int>(topology.gpus.size());
  }
  if (!topology.gpus.empty() && ranks > static_cast<int>(topology.gpus.size())) {
    plan.notes.push_back(
        str(ranks, " ranks share ", topology.gpus.size(), topology.gpus.size() == 1 ? " GPU" : " GPUs"));
  }
  if (topology.cores.empty()) {
    plan.notes.emplace_back("which cores there are is not known: no rank is bound");
  } else {
    Dealer(topology, plan)
        .deal(topology.gpus.empty() ? groups_by_node(topology, ranks) : groups_by_gpu(topology, ranks, plan.notes));
  }
  choose_nics(topology, plan);
  return plan;
}

}  // namespace skytrain::topology
