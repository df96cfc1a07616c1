#include "skytrain/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "skytrain/base/error.h"
#include "skytrain/topology/describe.h"
#include "skytrain/topology/nvml.h"
#include "skytrain/topology/this_machine.h"
#include "skytrain/topology/topology_test_data.h"

namespace skytrain::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Bridges = std::vector<std::string>;

TEST(PciLink, FollowsTheLegendOfNvidiaSmi) {
  const Bridges one = {"host bridge 0", "0000:00:01.0", "0000:10:00.0", "0000:11:00.0"};
  const Bridges two = {"host bridge 0", "0000:00:01.0", "0000:10:00.0", "0000:11:01.0"};
  const Bridges deeper = {"host bridge 0", "0000:00:01.0", "0000:10:00.0",
                          "0000:11:02.0",  "0000:20:00.0", "0000:21:00.0"};
  const Bridges port = {"host bridge 0", "0000:00:02.0"};
  const Bridges other = {"host bridge 1", "0000:80:01.0"};
  EXPECT_EQ(pci_link(one, 0, two, 0), Link::kPix);
  EXPECT_EQ(pci_link(one, 0, one, 0), Link::kPix);
  EXPECT_EQ(pci_link(one, 0, deeper, 0), Link::kPxb);
  EXPECT_EQ(pci_link(one, 0, port, 0), Link::kPhb);
  EXPECT_EQ(pci_link(one, 0, other, 0), Link::kNode);
  EXPECT_EQ(pci_link(one, 0, other, 1), Link::kSys);
  EXPECT_EQ(pci_link(one, -1, other, 1), Link::kUnknown);
  EXPECT_EQ(pci_link({}, 0, {}, 0), Link::kUnknown);
  EXPECT_EQ(pci_link({}, 0, {}, 1), Link::kSys);
}

TEST(PciAddress, OfNvmlAndOfSysfsAreTheSame) {
  EXPECT_EQ(pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_address("00010002:1B:00.0"), "00010002:1b:00.0");
  EXPECT_EQ(pci_address("0000:1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_address("x"), "x");
}

TEST(Synthetic, HasNodesCoresAndHyperthreads) {
  const Topology t = read_synthetic("pack:2 numa:2 core:3 pu:2");
  EXPECT_EQ(t.packages.size(), 2);
  ASSERT_EQ(t.numa_nodes.size(), 4);
  EXPECT_EQ(t.numa_nodes[2].package, 1);
  EXPECT_EQ(t.numa_nodes[2].cores_in_all, 3);
  ASSERT_EQ(t.cores.size(), 12);
  EXPECT_EQ(t.cores[7].numa_node, 2);
  EXPECT_THAT(t.cores[1].cpus, ElementsAre(2, 3));
}

TEST(Synthetic, WhatIsImpossibleIsRefused) {
  for (const char* text : {"", "pack:0", "pack:2 core", "foo:3", "core:-1 pu:1", "core:99999999 pu:1", "core:4",
                           "pack:64 core:1000 pu:100", "2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2", "core:4 pack:2", "((((",
                           "core:4 (", "core:99999999999999999999999"}) {
    try {
      const Topology t = read_synthetic(text);
      ADD_FAILURE() << text << " has " << t.cores.size() << " cores";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << text;
    }
  }
}

// An export of a machine with 2 nodes and 4 cores of which the cpuset leaves 3 CPUs, with a GPU and an RDMA NIC behind
// one PCIe switch at node 1.
std::string machine_xml() {
  const auto object = [](const std::string& attributes, const std::string& inside) {
    return "<object " + attributes + ">" + inside + "</object>\n";
  };
  int id = 10;
  const auto sets = [&id](const std::string& cpus, const std::string& nodes) {
    return " cpuset=\"" + cpus + "\" complete_cpuset=\"" + cpus + "\" nodeset=\"" + nodes + "\" complete_nodeset=\"" +
           nodes + "\" gp_index=\"" + std::to_string(id++) + "\"";
  };
  const auto core = [&](int cpu, const std::string& node) {
    const std::string cpus = "0x" + std::to_string(1 << cpu);
    const std::string number = " os_index=\"" + std::to_string(cpu) + "\"";
    return object("type=\"Core\"" + number + sets(cpus, node), object("type=\"PU\"" + number + sets(cpus, node), ""));
  };
  const auto bridge = [&](const char* type, const char* address, const char* buses, const std::string& inside) {
    return object("type=\"Bridge\" gp_index=\"" + std::to_string(id++) + "\" bridge_type=\"" + type +
                      "\" depth=\"0\" bridge_pci=\"" + buses + "\" pci_busid=\"" + address +
                      "\" pci_type=\"0604 [8086:0000] [0000:0000] 00\" pci_link_speed=\"0.0\"",
                  inside);
  };
  const auto device = [&](const char* address, const char* kind, const std::string& inside) {
    return object("type=\"PCIDev\" gp_index=\"" + std::to_string(id++) + "\" pci_busid=\"" + address +
                      "\" pci_type=\"" + kind + "\" pci_link_speed=\"0.0\"",
                  inside);
  };
  const auto os = [&](const char* name, int type) {
    return object("type=\"OSDev\" gp_index=\"" + std::to_string(id++) + "\" name=\"" + name + "\" osdev_type=\"" +
                      std::to_string(type) + "\"",
                  "");
  };
  const auto node = [&](int index, const std::string& cpus, const std::string& set) {
    return object("type=\"NUMANode\" os_index=\"" + std::to_string(index) + "\"" + sets(cpus, set) +
                      " local_memory=\"1073741824\"",
                  "");
  };
  const std::string devices =
      bridge("0-1", "0000:00:00.0", "0000:[80-9f]",
             bridge("1-1", "0000:80:01.0", "0000:[81-84]",
                    bridge("1-1", "0000:81:00.0", "0000:[82-84]",
                           bridge("1-1", "0000:82:00.0", "0000:[83-83]",
                                  device("0000:83:00.0", "0302 [10de:2330] [10de:16c1] a1", "")) +
                               bridge("1-1", "0000:82:01.0", "0000:[84-84]",
                                      device("0000:84:00.0", "0207 [15b3:1021] [15b3:0041] 00",
                                             os("ibs1", 2) + os("mlx5_0", 3))))));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
         "version=\"2.0\">\n" +
         object("type=\"Machine\" os_index=\"0\" allowed_cpuset=\"0x7\" allowed_nodeset=\"0x3\"" + sets("0xf", "0x3"),
                object("type=\"Package\" os_index=\"0\"" + sets("0x3", "0x1"),
                       node(0, "0x3", "0x1") + core(0, "0x1") + core(1, "0x1")) +
                    object("type=\"Package\" os_index=\"1\"" + sets("0xc", "0x2"),
                           node(1, "0xc", "0x2") + core(2, "0x2") + core(3, "0x2") + devices)) +
         "</topology>\n";
}

TEST(HwlocXml, HasDevicesBehindASwitchAndTheCpuset) {
  const Topology t = read_hwloc_xml(machine_xml(), "machine.xml");
  ASSERT_EQ(t.gpus.size(), 1);
  ASSERT_EQ(t.nics.size(), 1);
  EXPECT_EQ(t.gpus[0].pci, "0000:83:00.0");
  EXPECT_EQ(t.gpus[0].numa_node, 1);
  EXPECT_EQ(t.nics[0].name, "mlx5_0");
  EXPECT_TRUE(t.nics[0].rdma);
  EXPECT_THAT(t.nics[0].interfaces, ElementsAre("ibs1"));
  EXPECT_EQ(t.to_nic(0, 0).link, Link::kPix);
  EXPECT_EQ(t.cores.size(), 3);
  EXPECT_EQ(t.numa_nodes[1].cores_in_all, 2);
  EXPECT_EQ(tree_text(t),
            "machine.xml (lstopo): 2 sockets, 2 NUMA nodes, 3 cores, 1 GPU, 1 NIC\n"
            "  socket 0\n"
            "    NUMA node 0  2 cores, CPUs 0-1, 1.0 GiB\n"
            "  socket 1\n"
            "    NUMA node 1  1 core of 2 may be used, CPUs 2, 1.0 GiB\n"
            "      PCIe switch 0000:81:00.0\n"
            "        GPU0  0000:83:00.0\n"
            "        mlx5_0  RDMA, ibs1  0000:84:00.0\n");
}

TEST(HwlocXml, WhatIsNoneIsRefused) {
  std::string cut = machine_xml();
  cut.resize(cut.size() / 2);
  for (const std::string& text : {std::string(), std::string("<a/>"), std::string("<topology"),
                                  std::string("<topology version=\"2.0\"></topology>"), cut}) {
    try {
      read_hwloc_xml(text, "machine.xml");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_EQ(error.where(), "machine.xml");
    }
  }
}

TEST(ThisMachine, HasTheCpusOfThisProcess) {
  const Topology t = read_this_machine();
  ASSERT_FALSE(t.cores.empty());
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  size_t cpus = 0;
  for (const Core& core : t.cores) {
    for (const int cpu : core.cpus) EXPECT_TRUE(CPU_ISSET(cpu, &mask)) << cpu;
    cpus += core.cpus.size();
  }
  EXPECT_EQ(cpus, static_cast<size_t>(CPU_COUNT(&mask)));
  EXPECT_EQ(t.links.size(), t.devices());
}

TEST(ThisMachine, StatesOfNicsAreThoseOfSysfs) {
  const std::string sys = ::testing::TempDir() + "skytrain-sys." + std::to_string(::getpid());
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(sys + path).parent_path());
    std::ofstream(sys + path) << text;
  };
  write("/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  write("/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  write("/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  write("/class/net/eth0/operstate", "up\n");
  Topology t;
  t.nics = {{.name = "mlx5_0", .rdma = true},
            {.name = "mlx5_1", .rdma = true},
            {.name = "mlx5_2", .rdma = true},
            {.name = "eth0"}};
  add_nic_states(t, sys);
  std::filesystem::remove_all(sys);
  EXPECT_EQ(t.nics[0].active, true);
  EXPECT_EQ(t.nics[0].link_layer, "InfiniBand");
  EXPECT_EQ(t.nics[1].active, false);
  EXPECT_FALSE(t.nics[2].active.has_value());
  EXPECT_EQ(t.nics[3].active, true);
}

// A driver that shows GPUs 1 and 2 of a bus with three: two NVLinks between them, one that is off.
struct FakeDriver {
  std::vector<std::string> addresses = {"00000000:02:00.0", "00000000:03:00.0"};
  bool by_switch = false;
  char handles[2] = {};

  NvmlApi api() {
    NvmlApi out;
    const auto index = [this](void* device) { return static_cast<size_t>(static_cast<char*>(device) - handles); };
    const auto fill = [](NvmlPciInfo* pci, const std::string& address) {
      std::fill(std::begin(pci->bus_id), std::end(pci->bus_id), 'x');  // whatever the library leaves behind the end
      std::copy_n(address.c_str(), address.size() + 1, pci->bus_id);
      return 0;
    };
    out.count = [this](unsigned* count) { return *count = static_cast<unsigned>(addresses.size()), 0; };
    out.handle = [this](unsigned i, void** device) { return *device = handles + i, 0; };
    out.name = [](void*, char* name, unsigned length) { return std::snprintf(name, length, "NVIDIA H100"), 0; };
    out.pci = [=, this](void* device, NvmlPciInfo* pci) { return fill(pci, addresses[index(device)]); };
    out.common_ancestor = [](void*, void*, int* level) { return *level = 30, 0; };
    out.p2p_status = [](void*, void*, int, int* status) { return *status = 0, 0; };
    out.nvlink_state = [](void*, unsigned link, int* active) { return *active = link != 1, link < 3 ? 0 : 2; };
    out.nvlink_remote_type = [this](void*, unsigned, int* type) { return *type = by_switch ? 2 : 0, 0; };
    out.nvlink_remote_pci = [=, this](void* device, unsigned, NvmlPciInfo* pci) {
      return fill(pci, addresses[1 - index(device)]);
    };
    return out;
  }
};

Topology three_gpus_on_the_bus() {
  Topology t;
  t.numa_nodes = {{.index = 0, .cpus = {0, 1}}};
  for (int i = 1; i <= 3; ++i) {
    t.gpus.push_back({.name = "GPU" + std::to_string(i - 1),
                      .pci = "0000:0" + std::to_string(i) + ":00.0",
                      .bridges = {"host bridge 0", "0000:00:0" + std::to_string(i) + ".0"},
                      .numa_node = 0});
  }
  connect_by_pci(t);
  return t;
}

TEST(Nvml, ShowsTheGpusOfThisContainerAndTheirNvlinks) {
  for (const bool by_switch : {false, true}) {
    FakeDriver driver;
    driver.by_switch = by_switch;
    Topology t = three_gpus_on_the_bus();
    t.nics = {{.name = "mlx5_0", .rdma = true, .bridges = {"host bridge 0", "0000:00:02.0"}, .numa_node = 0}};
    add_from_nvml(driver.api(), t);
    ASSERT_EQ(t.gpus.size(), 2);
    EXPECT_EQ(t.gpus[0].name, "GPU0");
    EXPECT_EQ(t.gpus[0].pci, "0000:02:00.0");
    EXPECT_EQ(t.gpus[0].model, "NVIDIA H100");
    EXPECT_EQ(t.gpus[0].numa_node, 0);
    EXPECT_EQ(connection_text(t.connection(0, 1)), "NV2");
    EXPECT_EQ(t.connection(0, 1).p2p, true);
    EXPECT_EQ(t.to_nic(0, 0).link, Link::kPix);
    EXPECT_EQ(t.to_nic(1, 0).link, Link::kPhb);
    EXPECT_THAT(t.unknown, ElementsAre(StartsWith("1 more NVIDIA GPU is on the PCI bus")));
  }
}

TEST(Nvml, WhatTheLibraryLacksIsLookedUpOnTheBus) {
  FakeDriver driver;
  NvmlApi api = driver.api();
  api.nvlink_state = nullptr;
  api.common_ancestor = nullptr;
  api.p2p_status = nullptr;
  Topology t = three_gpus_on_the_bus();
  add_from_nvml(api, t);
  EXPECT_EQ(t.connection(0, 1).link, Link::kPhb);
  EXPECT_FALSE(t.connection(0, 1).p2p.has_value());
}

TEST(Nvml, WithoutADriverTheBusIsWhatIsKnown) {
  Topology t = three_gpus_on_the_bus();
  add_from_nvml_library(t, "libskytrain-no-such-library.so.1");
  EXPECT_EQ(t.gpus.size(), 3);
  EXPECT_THAT(t.unknown, Contains(HasSubstr("libskytrain-no-such-library.so.1 is not here")));
  add_from_nvml_library(t, "libm.so.6");
  EXPECT_THAT(t.unknown, Contains(HasSubstr("libm.so.6 lacks functions")));
  Topology none;
  add_from_nvml_library(none, "libskytrain-no-such-library.so.1");
  EXPECT_TRUE(none.unknown.empty());
}

TEST(Describe, TheMatrixAndTheTreeOfEightGpus) {
  const Topology t = eight_gpu_machine();
  const std::string matrix = matrix_text(t);
  EXPECT_THAT(matrix, HasSubstr("\n  GPU2         NV18  NV18  X "));
  EXPECT_THAT(matrix, HasSubstr("  NV#: a bonded set of # NVLinks; PXB: "));
  EXPECT_THAT(matrix, ::testing::Not(HasSubstr("?: not known")));
  EXPECT_THAT(tree_text(t), HasSubstr("    PCIe switch\n      GPU0\n      GPU1\n      mlx5_0  RDMA, NIC0\n"));
  EXPECT_THAT(tree_text(t), HasSubstr("64 cores (128 CPUs), 8 GPUs, 5 NICs\n"));
  EXPECT_THAT(switch_of_devices(t), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3, -1));
}

TEST(Describe, JsonHasNullForWhatIsNotKnown) {
  Topology t = eight_gpu_machine();
  const OrderedJson json = topology_json(t);
  EXPECT_EQ(json["gpus"][4]["numa_node"], 1);
  EXPECT_TRUE(json["cores"][0]["socket"].is_null());
  EXPECT_EQ(json["links"][0][1], "NV18");
  const OrderedJson plan = binding_json(t, plan_binding(t, 2));
  EXPECT_EQ(plan["ranks"][1]["nic"], "mlx5_0");
  EXPECT_EQ(plan["ranks"][0]["cpus"], "0-15,64-79");
}

}  // namespace
}  // namespace skytrain::topology
