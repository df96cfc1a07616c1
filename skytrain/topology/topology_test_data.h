// skytrain/topology/topology_test_data.h
//
// Machines for tests: cores by hwloc's synthetic descriptions, GPUs and NICs by tables as nvidia-smi prints them. The
// tables are made up here, in the shape of machines that are common.

#pragma once
#include <string>

#include "skytrain/topology/hwloc_source.h"
#include "skytrain/topology/nvidia_smi_topo.h"

namespace skytrain::topology {

// 8 GPUs on NVSwitch, 4 NICs each of which two GPUs share, and a fifth for storage at node 1: as in a DGX or H800
// machine.
inline std::string eight_gpus_four_nics() {
  std::string text =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\tCPU Affinity\tNUMA "
      "Affinity\tGPU "
      "NUMA ID\n";
  for (int row = 0; row < 13; ++row) {
    text += (row < 8 ? "GPU" + std::to_string(row) : "NIC" + std::to_string(row - 8)) + "\t";
    const auto node = [](int device) { return device < 8 ? device / 4 : device == 12 ? 1 : (device - 8) / 2; };
    const auto pair = [](int device) { return device < 8 ? device / 2 : device - 8; };
    for (int column = 0; column < 13; ++column) {
      const bool gpus = row < 8 && column < 8;
      text += row == column               ? " X "
              : gpus                      ? "NV18"
              : node(row) != node(column) ? "SYS"
              : pair(row) == pair(column) ? "PXB"
                                          : "NODE";
      text += "\t";
    }
    if (row < 8) text += row < 4 ? "0-31,64-95\t0\t\tN/A" : "32-63,96-127\t1\t\tN/A";
    text += "\n";
  }
  return text +
         "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA "
         "nodes\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_4\n  NIC3: mlx5_5\n  NIC4: "
         "mlx5_bond_0\n";
}

inline Topology eight_gpu_machine() { return parse_nvidia_smi_topo(eight_gpus_four_nics(), "topo.txt"); }

// 2 sockets of 16 cores with hyperthreads (CPUs c and c+32), 4 GPUs each, no NVLink, no NIC.
inline Topology two_sockets_four_gpus_each() {
  Topology topology = read_synthetic("pack:2 [numa] core:16 pu:2(indexes=2*32:1*2)");
  for (int i = 0; i < 8; ++i) {
    topology.gpus.push_back({.name = "GPU" + std::to_string(i), .numa_node = i / 4});
  }
  topology.resize_links();
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < a; ++b) topology.connect(a, b, {a / 4 == b / 4 ? Link::kPhb : Link::kSys});
  }
  return topology;
}

}  // namespace skytrain::topology
