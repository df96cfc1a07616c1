#include "skytrain/topology/hwloc_source.h"

#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

constexpr unsigned kNvidia = 0x10de;     // PCI vendor
constexpr unsigned kDisplay = 0x03;      // PCI base class: VGA and 3D controllers
constexpr uint64_t kMostCpus = 1 << 14;  // of a description
constexpr size_t kLargestXml = 64 << 20;

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

// hwloc without plug-ins: those of the machine belong to another hwloc and another C library than the bundle's.
Handle begin() {
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  ::setenv("HWLOC_HIDE_ERRORS", "2",
           1);  // what it finds odd about the machine's tables is nothing that users can act on
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error(ErrorKind::kEnvironment, "", "hwloc could not be started");
  Handle topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  return topology;
}

CpuList cpus_of(hwloc_const_bitmap_t set) {
  CpuList cpus;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return cpus;  // negative: infinite
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0 && cpu <= kLargestCpu; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  return cpus;
}

int package_of(hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
  return package == nullptr ? -1 : static_cast<int>(package->os_index);
}

std::string pci_text(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%01x", static_cast<unsigned>(pci.domain), pci.bus, pci.dev,
                pci.func);
  return text;
}

void add_cpus(hwloc_topology_t from, Topology& to) {
  const auto each = [&](hwloc_obj_type_t type, auto&& visit) {
    int count = 0;
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(from, type, object)) != nullptr; ++count) {
      visit(object);
    }
    return count;
  };
  each(HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t package) {
    const char* model = hwloc_obj_get_info_by_name(package, "CPUModel");
    to.packages.push_back({static_cast<int>(package->os_index), model == nullptr ? "" : model});
  });
  each(HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t node) {
    to.numa_nodes.push_back({static_cast<int>(node->os_index), package_of(from, node),
                             node->attr->numanode.local_memory, cpus_of(node->cpuset), 0});
  });
  const auto add_core = [&](hwloc_obj_t core) {
    Core out{package_of(from, core), -1, cpus_of(core->cpuset)};
    if (out.cpus.empty()) return;
    for (NumaNode& node : to.numa_nodes) {
      if (!std::binary_search(node.cpus.begin(), node.cpus.end(), out.cpus.front())) continue;
      out.numa_node = node.index;  // the first: a second one of the same cores is memory of another kind
      ++node.cores_in_all;
      break;
    }
    to.cores.push_back(std::move(out));
  };
  if (each(HWLOC_OBJ_CORE, add_core) == 0) {
    each(HWLOC_OBJ_PU, add_core);
    to.unknown.emplace_back("cores: each CPU is taken for one (no /sys?)");
  }
  if (to.packages.empty()) to.unknown.emplace_back("sockets (no /sys?)");
}

struct Where {
  std::string pci;
  std::vector<std::string> bridges;
  int numa_node = -1;
  CpuList near;
  hwloc_obj_t device = nullptr;  // the PCI device, nullptr: not on PCI
};

// Climbs from a device to the cores it is attached to.
Where where_is(hwloc_topology_t topology, hwloc_obj_t object) {
  Where out;
  hwloc_obj_t above = object;
  for (; above != nullptr && hwloc_obj_type_is_io(above->type); above = above->parent) {
    if (above->type == HWLOC_OBJ_PCI_DEVICE && out.device == nullptr) {
      out.device = above;
      out.pci = pci_text(above->attr->pcidev);
    }
    if (above->type != HWLOC_OBJ_BRIDGE) continue;
    const auto& bridge = above->attr->bridge;
    out.bridges.push_back(bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? pci_text(bridge.upstream.pci)
                                                                       : str("host bridge ", above->logical_index));
  }
  std::reverse(out.bridges.begin(), out.bridges.end());
  if (above == nullptr) return out;
  // A device at the root of a machine with several nodes has no known place (its numa_node is -1).
  const bool placed = above->parent != nullptr || hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) == 1;
  if (!placed) return out;
  if (above->nodeset != nullptr && hwloc_bitmap_weight(above->nodeset) == 1) {
    out.numa_node = hwloc_bitmap_first(above->nodeset);
  }
  out.near = cpus_of(above->cpuset);
  return out;
}

void add_gpus(hwloc_topology_t from, Topology& to) {
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(from, device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    if (pci.vendor_id != kNvidia || pci.class_id >> 8 != kDisplay) continue;
    const Where place = where_is(from, device);
    const char* model = hwloc_obj_get_info_by_name(device, "PCIDevice");
    to.gpus.push_back({.model = model == nullptr ? "" : model,
                       .pci = place.pci,
                       .bridges = place.bridges,
                       .numa_node = place.numa_node,
                       .near = place.near});
  }
  std::sort(to.gpus.begin(), to.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  for (size_t i = 0; i < to.gpus.size(); ++i) to.gpus[i].name = str("GPU", i);
}

// An RDMA device and its network interfaces are one NIC: they hang on the same PCI device.
void add_nics(hwloc_topology_t from, Topology& to) {
  std::map<hwloc_obj_t, size_t> by_device;
  for (const bool rdma : {true, false}) {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_osdev(from, object)) != nullptr;) {
      const auto type = rdma ? HWLOC_OBJ_OSDEV_OPENFABRICS : HWLOC_OBJ_OSDEV_NETWORK;
      if (object->attr->osdev.type != type || object->name == nullptr) continue;
      const Where place = where_is(from, object);
      const auto known = by_device.find(place.device);
      if (!rdma && place.device != nullptr && known != by_device.end()) {
        to.nics[known->second].interfaces.emplace_back(object->name);
        continue;
      }
      if (place.device != nullptr) by_device.emplace(place.device, to.nics.size());
      Nic nic{.name = object->name,
              .rdma = rdma,
              .pci = place.pci,
              .bridges = place.bridges,
              .numa_node = place.numa_node,
              .near = place.near};
      if (!rdma) nic.interfaces.push_back(nic.name);
      to.nics.push_back(std::move(nic));
    }
  }
  std::stable_sort(to.nics.begin(), to.nics.end(), [](const Nic& a, const Nic& b) {
    return std::tuple(!a.rdma, a.pci, a.name) < std::tuple(!b.rdma, b.pci, b.name);
  });
}

Topology convert(hwloc_topology_t from, std::string source) {
  Topology to;
  to.source = std::move(source);
  add_cpus(from, to);
  add_gpus(from, to);
  add_nics(from, to);
  connect_by_pci(to);
  return to;
}

// The product of a description's counts ("pack:2 core:4(indexes=…) 2"), before hwloc makes that many objects.
uint64_t cpus_described(std::string_view description) {
  uint64_t product = 1;
  bool attributes = false;
  for (size_t i = 0; i < description.size() && product <= kMostCpus; ++i) {
    const char before = i == 0 ? ' ' : description[i - 1];
    attributes = description[i] == '(' || (attributes && before != ')');
    if (attributes || (before != ':' && before != ' ')) continue;
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(description.data() + i, description.data() + description.size(), count);
    if (error == std::errc::result_out_of_range) return kMostCpus + 1;
    if (error == std::errc()) product *= std::clamp<uint64_t>(count, 1, kMostCpus + 1);
  }
  return product;
}

}  // namespace

Topology read_this_system() {
  const Handle topology = begin();
  hwloc_topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (hwloc_topology_load(topology.get()) != 0) {
    throw Error(ErrorKind::kEnvironment, "", "hwloc could not read the topology of this machine");
  }
  Topology out = convert(topology.get(), "this machine");
  CpuList usable = cpus_of(hwloc_topology_get_allowed_cpuset(topology.get()));
  hwloc_bitmap_t bound = hwloc_bitmap_alloc();
  if (bound != nullptr && hwloc_get_cpubind(topology.get(), bound, HWLOC_CPUBIND_PROCESS) == 0) {
    usable = intersection(usable, cpus_of(bound));
  }
  hwloc_bitmap_free(bound);
  restrict_to(out, usable);
  return out;
}

Topology read_hwloc_xml(const std::string& content, const std::string& where) {
  const auto refuse = [&](const char* what) {
    throw Error(ErrorKind::kData, where, what, "make it on the machine: lstopo machine.xml (of hwloc 2)");
  };
  if (content.size() > kLargestXml) refuse("is too large for an export of lstopo");
  if (content.find("<topology") == content.npos) refuse("is no XML export of lstopo");
  const Handle topology = begin();
  hwloc_topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  // hwloc counts the terminating zero.
  if (hwloc_topology_set_xmlbuffer(topology.get(), content.c_str(), static_cast<int>(content.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    refuse("is no XML export of lstopo that hwloc can read");
  }
  Topology out = convert(topology.get(), where + " (lstopo)");
  restrict_to(out, cpus_of(hwloc_topology_get_allowed_cpuset(topology.get())));
  return out;
}

Topology read_synthetic(const std::string& description) {
  const auto refuse = [&](std::string what) {
    throw Error(ErrorKind::kUsage, "--synthetic", std::move(what),
                "such as \"pack:2 numa:1 core:16 pu:2\": 2 sockets, each a NUMA node of 16 cores with 2 hyperthreads");
  };
  const std::string shown = printable(description, 80);
  if (cpus_described(description) > kMostCpus) refuse(str("\"", shown, "\" has more than ", kMostCpus, " CPUs"));
  const Handle topology = begin();
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    refuse(str("\"", shown, "\" is no synthetic description that hwloc understands"));
  }
  Topology out = convert(topology.get(), "synthetic " + shown);
  out.unknown.emplace_back("GPUs and NICs: a synthetic description has none");
  return out;
}

}  // namespace skytrain::topology
