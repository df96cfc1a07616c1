// skytrain/topology/topology.h
//
// What a machine is made of, as far as it matters to where ranks run and how their GPUs talk: sockets, NUMA nodes,
// cores, GPUs, NICs, and how any two of the devices are connected. Plain data without a library behind it, filled by
// hwloc_source.h, nvml.h or nvidia_smi_topo.h. What is not known is -1, "", empty or Link::kUnknown, and `unknown` says
// why. Not thread-safe beyond reading.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/topology/cpu_list.h"

namespace skytrain::topology {

struct Package {
  int index = 0;      // the operating system's number of the socket
  std::string model;  // of the CPU
};

struct NumaNode {
  int index = 0;  // the operating system's number
  int package = -1;
  uint64_t memory_bytes = 0;  // 0: not known
  CpuList cpus;               // that may be used
  int cores_in_all = 0;       // with those that the cpuset or the affinity takes away
};

struct Core {
  int package = -1;    // indices of the operating system, as above
  int numa_node = -1;  // the nearest
  CpuList cpus;        // its hyperthreads that may be used; at least one
};

struct Gpu {
  std::string name;  // "GPU0", numbered as nvidia-smi does: by PCI address
  std::string model;
  std::string pci;                   // "0000:1b:00.0"
  std::vector<std::string> bridges;  // from the host bridge down to it; empty: not known
  int numa_node = -1;
  CpuList near;  // CPUs that are nearest, usable or not
};

struct Nic {
  std::string name;                     // of the RDMA device ("mlx5_0"), else of the interface ("eth0")
  std::string label;                    // "NIC0" of nvidia-smi, else ""
  bool rdma = false;                    // InfiniBand, RoCE, EFA
  std::optional<bool> active;           // whether a port of the RDMA device, or the interface, is up
  std::string link_layer;               // "InfiniBand" or "Ethernet" of an RDMA device
  std::vector<std::string> interfaces;  // its network interfaces
  std::string pci;
  std::vector<std::string> bridges;
  int numa_node = -1;
  CpuList near;
};

// From near to far. The names and their meanings are those of the legend that `nvidia-smi topo -m` prints.
enum class Link {
  kSelf,
  kNvLink,   // NV#: a bonded set of # NVLinks
  kPix,      // PIX: at most a single PCIe bridge
  kPxb,      // PXB: several PCIe bridges, but no host bridge
  kPhb,      // PHB: a PCIe host bridge (typically the CPU)
  kNode,     // NODE: the interconnect between host bridges of one NUMA node
  kSys,      // SYS: the interconnect between NUMA nodes
  kUnknown,  // ?
};

struct Connection {
  Link link = Link::kUnknown;
  int nvlinks = 0;          // of kNvLink
  std::optional<bool> p2p;  // whether the driver allows direct access between two GPUs
  bool operator==(const Connection&) const = default;
};

struct Topology {
  std::string source;  // "this machine", "FILE (nvidia-smi topo -m)"
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<Core> cores;  // that may be used, neighbours beside each other
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  // By device: the GPUs in their order, then the NICs. Square and symmetric.
  std::vector<std::vector<Connection>> links;
  std::vector<std::string> unknown;  // what could not be told, and why: one clause each

  size_t devices() const { return gpus.size() + nics.size(); }
  std::string device_name(size_t device) const;
  const Connection& connection(size_t a, size_t b) const { return links[a][b]; }
  const Connection& to_nic(size_t gpu, size_t nic) const { return links[gpu][gpus.size() + nic]; }
  void resize_links();  // to all devices, kSelf on the diagonal; what is there stays only if the number fits
  void connect(size_t a, size_t b, const Connection& connection);
};

std::string connection_text(const Connection& connection);          // "NV18", "PIX", "X", "?"
std::optional<Connection> parse_connection(std::string_view text);  // also SOC, which older drivers say for SYS

// Leaves the CPUs that are in `usable`, and says in `unknown` nothing: what is cut off is seen in cores_in_all.
void restrict_to(Topology& topology, const CpuList& usable);

// How two PCI devices are connected, from their bridges and NUMA nodes.
Link pci_link(const std::vector<std::string>& bridges_a, int node_a, const std::vector<std::string>& bridges_b,
              int node_b);
// Sets what is kUnknown to pci_link.
void connect_by_pci(Topology& topology);

// "00000000:1B:00.0" -> "0000:1b:00.0": NVML has eight digits of the domain, sysfs four.
std::string pci_address(std::string_view text);

}  // namespace skytrain::topology
