#include "skytrain/topology/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "skytrain/base/error.h"
#include "skytrain/topology/topology_test_data.h"

namespace skytrain::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What holds of every plan: no CPU twice, and of each core all or nothing.
void expect_sound(const Topology& topology, const BindingPlan& plan) {
  std::set<int> given;
  for (const RankBinding& rank : plan.ranks) {
    for (const int cpu : rank.cpus) EXPECT_TRUE(given.insert(cpu).second) << "CPU " << cpu << " twice";
    int cores = 0;
    for (const Core& core : topology.cores) {
      const size_t shared = intersection(core.cpus, rank.cpus).size();
      EXPECT_TRUE(shared == 0 || shared == core.cpus.size()) << cpu_list_text(core.cpus) << " is torn apart";
      cores += shared > 0;
    }
    EXPECT_EQ(cores, rank.cores);
  }
}

BindingPlan plan_of(const Topology& topology, int ranks) {
  BindingPlan plan = plan_binding(topology, ranks);
  EXPECT_EQ(plan.ranks.size(), static_cast<size_t>(ranks));
  expect_sound(topology, plan);
  return plan;
}

std::vector<std::string> cpus_of(const BindingPlan& plan) {
  std::vector<std::string> out;
  for (const RankBinding& rank : plan.ranks) out.push_back(cpu_list_text(rank.cpus));
  return out;
}

TEST(Binding, OneSocketIsDividedEvenly) {
  const Topology topology = read_synthetic("pack:1 core:8 pu:2");
  EXPECT_EQ(default_ranks(topology), 1);
  EXPECT_THAT(cpus_of(plan_of(topology, 1)), ElementsAre("0-15"));
  EXPECT_THAT(cpus_of(plan_of(topology, 2)), ElementsAre("0-7", "8-15"));
  EXPECT_THAT(cpus_of(plan_of(topology, 3)), ElementsAre("0-5", "6-11", "12-15"));
}

TEST(Binding, ARankStaysOnItsGpusSocketWithBothHyperthreads) {
  const Topology topology = two_sockets_four_gpus_each();
  EXPECT_EQ(default_ranks(topology), 8);
  const BindingPlan plan = plan_of(topology, 8);
  EXPECT_EQ(cpu_list_text(plan.ranks[0].cpus), "0-3,32-35");
  EXPECT_EQ(cpu_list_text(plan.ranks[7].cpus), "28-31,60-63");
  for (const RankBinding& rank : plan.ranks) {
    EXPECT_EQ(rank.gpu, rank.rank);
    EXPECT_EQ(rank.cores, 4);
    EXPECT_THAT(rank.numa_nodes, ElementsAre(rank.rank / 4));
    EXPECT_EQ(rank.nic, -1);
  }
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(Binding, FewerRanksThanGpusShareTheSocketAmongThemselves) {
  const BindingPlan plan = plan_of(two_sockets_four_gpus_each(), 5);
  EXPECT_THAT(cpus_of(plan), ElementsAre("0-3,32-35", "4-7,36-39", "8-11,40-43", "12-15,44-47", "16-31,48-63"));
}

TEST(Binding, EachPairOfGpusHasItsNic) {
  const Topology topology = eight_gpu_machine();
  const BindingPlan plan = plan_of(topology, 8);
  std::vector<std::string> nics;
  for (const RankBinding& rank : plan.ranks) nics.push_back(topology.nics[static_cast<size_t>(rank.nic)].name);
  EXPECT_THAT(nics, ElementsAre("mlx5_0", "mlx5_0", "mlx5_1", "mlx5_1", "mlx5_4", "mlx5_4", "mlx5_5", "mlx5_5"));
  EXPECT_EQ(cpu_list_text(plan.ranks[1].cpus), "8-15,72-79");
  EXPECT_THAT(plan.ranks[5].numa_nodes, ElementsAre(1));
}

TEST(Binding, NicsThatAreAsNearAreTakenInTurn) {
  Topology topology = eight_gpu_machine();
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    for (size_t nic = 0; nic < 5; ++nic) topology.connect(gpu, 8 + nic, {Link::kNode});
  }
  topology.nics[2].active = false;  // its port is down
  const BindingPlan plan = plan_of(topology, 8);
  std::vector<int> nics;
  for (const RankBinding& rank : plan.ranks) nics.push_back(rank.nic);
  EXPECT_THAT(nics, ElementsAre(0, 1, 3, 4, 0, 1, 3, 4));
}

TEST(Binding, ACoreIsNotGivenTwiceWhenThereAreMoreRanks) {
  const Topology topology = read_synthetic("pack:2 [numa] core:2 pu:2");
  const BindingPlan plan = plan_of(topology, 6);
  int bound = 0;
  for (const RankBinding& rank : plan.ranks) bound += rank.cores;
  EXPECT_EQ(bound, 4);
  ASSERT_EQ(plan.notes.size(), 1);
  EXPECT_THAT(plan.notes[0], HasSubstr("there are 4 cores for 6 ranks: none is left for rank "));
}

TEST(Binding, RanksWithoutGpusGoToNodesByTheirCores) {
  Topology topology = read_synthetic("pack:2 [numa] core:8 pu:1");
  EXPECT_EQ(default_ranks(topology), 2);
  EXPECT_THAT(cpus_of(plan_of(topology, 1)), ElementsAre("0-15"));
  restrict_to(topology, *parse_cpu_list("0-7,8-9"));
  const BindingPlan plan = plan_of(topology, 5);
  EXPECT_THAT(cpus_of(plan), ElementsAre("0-1", "2-3", "4-5", "6-7", "8-9"));
  EXPECT_THAT(plan.ranks[4].numa_nodes, ElementsAre(1));
}

TEST(Binding, OfflineCoresAreNotGiven) {
  Topology topology = two_sockets_four_gpus_each();
  restrict_to(topology,
              *parse_cpu_list("0-1,3-31,32-33,36-63"));  // core 2 is offline, core 3 without its second thread
  const BindingPlan plan = plan_of(topology, 8);
  EXPECT_EQ(cpu_list_text(plan.ranks[0].cpus), "0-1,3-4,32-33,36");
  EXPECT_EQ(plan.ranks[3].cores, 3);
}

TEST(Binding, ACpusetThatCutsANodeOffIsTold) {
  Topology topology = two_sockets_four_gpus_each();
  restrict_to(topology, *parse_cpu_list("0-15,32-47"));
  const BindingPlan plan = plan_of(topology, 8);
  for (const RankBinding& rank : plan.ranks) EXPECT_EQ(rank.cores, 2);
  ASSERT_EQ(plan.notes.size(), 4);
  EXPECT_EQ(plan.notes[0], "GPU4: none of the cores near it (NUMA node 1) may be used here; others are taken");
}

TEST(Binding, ARankWhoseNodeHasTooFewCoresGetsOneElsewhere) {
  Topology topology = two_sockets_four_gpus_each();
  restrict_to(topology, *parse_cpu_list("0-15,16-18"));
  const BindingPlan plan = plan_of(topology, 8);
  EXPECT_THAT(plan.ranks[7].numa_nodes, ElementsAre(0));
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("of rank 7 are used up")));
}

TEST(Binding, RanksBeyondTheGpusShareThem) {
  const BindingPlan plan = plan_of(two_sockets_four_gpus_each(), 16);
  EXPECT_EQ(plan.ranks[8].gpu, 0);
  EXPECT_EQ(plan.ranks[15].cores, 2);
  EXPECT_THAT(plan.notes, ElementsAre("16 ranks share 8 GPUs"));
}

TEST(Binding, WithoutKnownCoresNothingIsBound) {
  Topology topology;
  topology.gpus.resize(2);
  topology.resize_links();
  const BindingPlan plan = plan_of(topology, 2);
  EXPECT_THAT(plan.notes, ElementsAre("which cores there are is not known: no rank is bound"));
}

TEST(Binding, GpusOfUnknownPlaceTakeAnyCores) {
  Topology topology = read_synthetic("pack:2 [numa] core:4 pu:1");
  topology.gpus = {{.name = "GPU0"}, {.name = "GPU1", .numa_node = 1}};
  topology.resize_links();
  const BindingPlan plan = plan_of(topology, 2);
  EXPECT_EQ(cpu_list_text(plan.ranks[0].cpus), "0-3");
  EXPECT_EQ(cpu_list_text(plan.ranks[1].cpus), "4-7");
  EXPECT_THAT(plan.notes, ElementsAre("GPU0: which cores are near it is not known; any are taken"));
}

TEST(Binding, IsSoundForAnyNumberOfRanks) {
  for (const Topology& topology : {two_sockets_four_gpus_each(), eight_gpu_machine(),
                                   read_synthetic("pack:2 numa:2 core:3 pu:4"), read_synthetic("pack:3 core:1 pu:1")}) {
    for (int ranks = 1; ranks < 40; ++ranks) {
      const BindingPlan plan = plan_of(topology, ranks);
      size_t bound = 0;
      for (const RankBinding& rank : plan.ranks) bound += rank.cores > 0;
      EXPECT_EQ(bound, std::min<size_t>(topology.cores.size(), static_cast<size_t>(ranks)));
    }
  }
}

TEST(Binding, RefusesANumberThatIsNone) {
  for (const int ranks : {0, -1, kMostRanks + 1}) EXPECT_THROW(plan_binding(eight_gpu_machine(), ranks), Error);
}

}  // namespace
}  // namespace skytrain::topology
