#include "skytrain/topology/nvidia_smi_topo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "skytrain/base/error.h"
#include "skytrain/topology/topology_test_data.h"

namespace skytrain::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_nvidia_smi_topo(text, "log");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.where() + ": " + error.problem();
  }
  return "accepted";
}

TEST(NvidiaSmiTopo, ReadsGpusNicsAndAffinities) {
  const Topology t = eight_gpu_machine();
  ASSERT_EQ(t.gpus.size(), 8);
  ASSERT_EQ(t.nics.size(), 5);
  EXPECT_EQ(connection_text(t.connection(0, 7)), "NV18");
  EXPECT_EQ(t.to_nic(2, 1).link, Link::kPxb);
  EXPECT_EQ(t.to_nic(2, 3).link, Link::kSys);
  EXPECT_EQ(t.nics[4].name, "mlx5_bond_0");
  EXPECT_EQ(t.nics[4].label, "NIC4");
  EXPECT_EQ(t.nics[0].numa_node, 0);
  EXPECT_EQ(t.nics[4].numa_node, 1);
  EXPECT_EQ(t.gpus[5].numa_node, 1);
  EXPECT_EQ(cpu_list_text(t.gpus[5].near), "32-63,96-127");
  EXPECT_EQ(t.numa_nodes.size(), 2);
  ASSERT_EQ(t.cores.size(), 64);
  EXPECT_THAT(t.cores[1].cpus, ElementsAre(1, 65));
}

// People paste logs with a prompt before them, tabs turned into spaces, and the underlined header of a terminal.
TEST(NvidiaSmiTopo, IsTheSameAsPeoplePasteIt) {
  const Topology plain = eight_gpu_machine();
  std::string pasted = eight_gpus_four_nics();
  for (size_t tab; (tab = pasted.find('\t')) != pasted.npos;) pasted.replace(tab, 1, "   ");
  for (size_t end = 0; (end = pasted.find('\n', end)) != pasted.npos; end += 2) pasted.insert(end, "\r");
  pasted.insert(0, "\x1b[4m");
  pasted = "user@node1:~$ nvidia-smi topo -m\n" + pasted + "\nuser@node1:~$\n";
  const Topology read = parse_nvidia_smi_topo(pasted, "topo.txt");
  EXPECT_EQ(read.links, plain.links);
  EXPECT_EQ(read.gpus[7].near, plain.gpus[7].near);
  EXPECT_EQ(read.nics[0].name, "mlx5_0");
}

TEST(NvidiaSmiTopo, OlderDriversNameNicsInTheHeaderAndSaySoc) {
  const Topology t = parse_nvidia_smi_topo(
      "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tSOC\tPIX\t0-9\nGPU1\tSOC\t X \tSOC\t10-19\nmlx5_0\tPIX\tSOC\t X "
      "\n",
      "");
  EXPECT_EQ(t.connection(0, 1).link, Link::kSys);
  EXPECT_EQ(t.nics[0].name, "mlx5_0");
  EXPECT_EQ(t.to_nic(0, 0).link, Link::kPix);
  EXPECT_EQ(t.gpus[1].numa_node, -1);
  EXPECT_EQ(t.cores.size(), 20);
}

TEST(NvidiaSmiTopo, OneGpuWhoseNodeIsNotTold) {
  const Topology t =
      parse_nvidia_smi_topo("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-3\t\tN/A\t\tN/A\n", "");
  EXPECT_EQ(t.gpus[0].numa_node, -1);
  EXPECT_EQ(cpu_list_text(t.gpus[0].near), "0-3");
  EXPECT_EQ(parse_nvidia_smi_topo("\tGPU0\tCPU Affinity\nGPU0\t X \tN/A\n", "").cores.size(), 0);
}

TEST(NvidiaSmiTopo, ARowThatIsMissingIsFilledFromTheOthers) {
  const Topology t = parse_nvidia_smi_topo("GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-3\n", "log");
  EXPECT_EQ(connection_text(t.connection(1, 0)), "NV4");
  EXPECT_THAT(t.unknown, Contains(HasSubstr("the row of GPU1 is missing")));
}

TEST(NvidiaSmiTopo, CpusAreHyperthreadsOfACoreOnlyWhereTheNumbersSaySo) {
  const auto cores = [](const char* list) {
    bool assumed = false;
    const size_t count = cores_of_affinity(*parse_cpu_list(list), assumed).size();
    return std::pair(count, assumed);
  };
  EXPECT_EQ(cores("0-47,96-143"), std::pair(size_t{48}, true));
  EXPECT_EQ(cores("0-3,8-11,16-19,24-27"), std::pair(size_t{16}, false));  // no gap is larger than the others
  EXPECT_EQ(cores("0-3,8-11,32-35,40-43"), std::pair(size_t{8}, true));
  EXPECT_EQ(cores("0-63"), std::pair(size_t{64}, false));
  EXPECT_EQ(cores("0,2,4,6"), std::pair(size_t{4}, false));
  EXPECT_EQ(cores("0-3,8-10"), std::pair(size_t{7}, false));
  EXPECT_EQ(cores("5"), std::pair(size_t{1}, false));
  EXPECT_EQ(cores(""), std::pair(size_t{0}, false));
}

TEST(NvidiaSmiTopo, TakesSocketsAndCoresFromElsewhere) {
  const Topology t =
      with_devices_of(read_synthetic("pack:2 [numa] core:32 pu:2(indexes=2*64:1*2)"), eight_gpu_machine());
  EXPECT_EQ(t.packages.size(), 2);
  EXPECT_EQ(t.cores.size(), 64);
  EXPECT_EQ(t.gpus.size(), 8);
  const Topology small = with_devices_of(read_synthetic("core:8 pu:1"), eight_gpu_machine());
  EXPECT_THAT(small.unknown, Contains(HasSubstr("GPU0: its CPU affinity names CPUs that the machine does not have")));
}

TEST(NvidiaSmiTopo, WhatIsNoTableIsRefusedWithItsPlace) {
  for (const char* text : {"", "\n", "Failed to initialize NVML: Driver/library version mismatch\n", "GPU0\n",
                           "GPU0 GPU1\n", "GPU0: NVIDIA H100\nGPU0 is fine\n", "GPU0 GPU0 CPU Affinity\nGPU0 X X\n"}) {
    EXPECT_EQ(refusal(text), "log: has no table of nvidia-smi topo -m") << text;
  }
  EXPECT_EQ(refusal(" \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n"),
            "log:2: is the table of nvidia-smi topo -p2p, which says nothing of the connections");
  EXPECT_EQ(refusal("GPU0 GPU1 GPU2\nGPU0 X NV4\n"), "log:2: the row of GPU0 has 2 of 3 connections");
  EXPECT_EQ(refusal("GPU0 GPU1\nGPU0 X PXC\n"), "log:2: in the row of GPU0: \"PXC\" is no connection");
  EXPECT_EQ(refusal("GPU0 GPU1\nGPU0 PIX X\n"), "log:2: in the row of GPU0: \"PIX\" is no connection");
  EXPECT_EQ(refusal("GPU0 GPU1\nGPU0 X NV99999999999\n"),
            "log:2: in the row of GPU0: \"NV99999999999\" is no connection");
}

TEST(NvidiaSmiTopo, DamagedLogsAreReadOrRefused) {
  std::mt19937 random(5);
  const std::string whole = eight_gpus_four_nics();
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random());
      else
        text.erase(at, random() % 40);
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    refused += refusal(text) != "accepted";
  }
  EXPECT_GT(refused, 100);
}

TEST(CpuList, IsReadAsLinuxWritesIt) {
  EXPECT_EQ(cpu_list_text(*parse_cpu_list("0-3,8,6-7,2-4")), "0-4,6-8");
  EXPECT_EQ(parse_cpu_list("")->size(), 0);
  for (const char* text : {"a", "1-", "-1", "3-2", "1,,2", "99999", "0-999999999", "1 2", "N/A"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

}  // namespace
}  // namespace skytrain::topology
