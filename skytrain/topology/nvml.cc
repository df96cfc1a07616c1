#include "skytrain/topology/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <climits>

#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

constexpr unsigned kMostGpus = 256;
constexpr unsigned kMostLinks = 64;               // NVML_NVLINK_MAX_LINKS is 18 today
constexpr int kRemoteGpu = 0, kRemoteSwitch = 2;  // nvmlIntNvLinkDeviceType_t
constexpr int kP2pRead = 0, kP2pWrite = 1;        // nvmlGpuP2PCapsIndex_t; status 0 is OK

struct Seen {
  void* handle = nullptr;
  Gpu gpu;
  std::vector<std::string> peers;  // PCI address at the far end of each active NVLink
  int to_switch = 0;               // active NVLinks to an NVSwitch
};

std::string address(NvmlPciInfo& pci) {
  pci.bus_id[sizeof pci.bus_id - 1] = '\0';
  return pci_address(pci.bus_id);
}

void read_nvlinks(const NvmlApi& nvml, Seen& seen) {
  if (!nvml.nvlink_state || !nvml.nvlink_remote_pci) return;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int active = 0;
    if (nvml.nvlink_state(seen.handle, link, &active) != 0) continue;  // some links of a GPU may not exist
    if (active == 0) continue;
    int type = kRemoteGpu;
    if (nvml.nvlink_remote_type && nvml.nvlink_remote_type(seen.handle, link, &type) != 0) continue;
    NvmlPciInfo remote{};
    if (type == kRemoteSwitch) {
      ++seen.to_switch;
    } else if (type == kRemoteGpu && nvml.nvlink_remote_pci(seen.handle, link, &remote) == 0) {
      seen.peers.push_back(address(remote));
    }
  }
}

std::vector<Seen> read_gpus(const NvmlApi& nvml) {
  std::vector<Seen> out;
  unsigned count = 0;
  if (nvml.count(&count) != 0) return out;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    Seen seen;
    NvmlPciInfo pci{};
    if (nvml.handle(i, &seen.handle) != 0 || nvml.pci(seen.handle, &pci) != 0) continue;
    seen.gpu.name = str("GPU", i);
    seen.gpu.pci = address(pci);
    std::array<char, 96> name{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
    if (nvml.name(seen.handle, name.data(), name.size()) == 0) {
      name.back() = '\0';
      seen.gpu.model = printable(name.data());
    }
    constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
    std::array<unsigned long, 4096 / kBits> set{};
    if (nvml.cpu_affinity && nvml.cpu_affinity(seen.handle, set.size(), set.data()) == 0) {
      for (unsigned cpu = 0; cpu < set.size() * kBits; ++cpu) {
        if ((set[cpu / kBits] >> (cpu % kBits) & 1) != 0) seen.gpu.near.push_back(static_cast<int>(cpu));
      }
    }
    read_nvlinks(nvml, seen);
    out.push_back(std::move(seen));
  }
  return out;
}

// nvmlGpuTopologyLevel_t
Link link_of_level(int level) {
  switch (level) {
    case 0:  // INTERNAL: two GPUs of one board
    case 10:
      return Link::kPix;  // SINGLE
    case 20:
      return Link::kPxb;  // MULTIPLE
    case 30:
      return Link::kPhb;  // HOSTBRIDGE
    case 40:
      return Link::kNode;
    case 50:
      return Link::kSys;
    default:
      return Link::kUnknown;
  }
}

Connection connection_of(const NvmlApi& nvml, const Seen& a, const Seen& b) {
  Connection out;
  int level = -1;
  if (nvml.common_ancestor && nvml.common_ancestor(a.handle, b.handle, &level) == 0) out.link = link_of_level(level);
  const auto direct = std::count(a.peers.begin(), a.peers.end(), b.gpu.pci);
  const int nvlinks = direct > 0 ? static_cast<int>(direct) : std::min(a.to_switch, b.to_switch);
  if (nvlinks > 0) out = {Link::kNvLink, nvlinks};
  int read = -1, write = -1;
  if (nvml.p2p_status && nvml.p2p_status(a.handle, b.handle, kP2pRead, &read) == 0 &&
      nvml.p2p_status(a.handle, b.handle, kP2pWrite, &write) == 0) {
    out.p2p = read == 0 && write == 0;
  }
  return out;
}

// Beside the loader's own places those that a loader of Debian's (the bundle's) does not know: Red Hat's, WSL's, GKE's.
void* open(const std::string& library) {
  for (const char* folder : {"", "/usr/lib64/", "/usr/lib/wsl/lib/", "/usr/local/nvidia/lib64/"}) {
    if (void* loaded = ::dlopen((folder + library).c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
  }
  return nullptr;
}

template <class Signature>
bool load(void* library, const char* name, std::function<Signature>& into) {
  if (void* symbol = ::dlsym(library, name)) into = reinterpret_cast<Signature*>(symbol);
  return static_cast<bool>(into);
}

}  // namespace

void add_from_nvml(const NvmlApi& nvml, Topology& topology) {
  std::vector<Seen> seen = read_gpus(nvml);
  const std::vector<Gpu> on_bus = topology.gpus;
  topology.gpus.clear();
  for (Seen& each : seen) {
    Gpu& gpu = each.gpu;
    const auto same = std::find_if(on_bus.begin(), on_bus.end(), [&](const Gpu& g) { return g.pci == gpu.pci; });
    if (same != on_bus.end()) {
      gpu.bridges = same->bridges;
      gpu.numa_node = same->numa_node;
      if (!same->near.empty()) gpu.near = same->near;
    } else if (!gpu.near.empty()) {
      for (const NumaNode& node : topology.numa_nodes) {
        if (intersection(node.cpus, gpu.near).size() == gpu.near.size()) gpu.numa_node = node.index;
      }
    }
    topology.gpus.push_back(gpu);
  }
  const auto hidden = std::count_if(on_bus.begin(), on_bus.end(), [&](const Gpu& g) {
    return std::none_of(topology.gpus.begin(), topology.gpus.end(), [&](const Gpu& gpu) { return gpu.pci == g.pci; });
  });
  if (hidden > 0) {
    topology.unknown.push_back(str(hidden, " more NVIDIA ", hidden == 1 ? "GPU is" : "GPUs are",
                                   " on the PCI bus that the driver does not show here (another container's?)"));
  }
  topology.links.clear();
  topology.resize_links();
  for (size_t a = 0; a < seen.size(); ++a) {
    for (size_t b = a + 1; b < seen.size(); ++b) topology.connect(a, b, connection_of(nvml, seen[a], seen[b]));
  }
  connect_by_pci(topology);
}

void add_from_nvml_library(Topology& topology, const char* library) {
  const auto unknown = [&](const std::string& why) {
    if (!topology.gpus.empty()) topology.unknown.push_back("models, NVLinks and peer access of the GPUs: " + why);
  };
  void* const loaded = open(library);
  if (loaded == nullptr) return unknown(str("the driver's library ", library, " is not here"));
  std::function<int()> init, shutdown;
  NvmlApi nvml;
  const bool whole = load(loaded, "nvmlInit_v2", init) && load(loaded, "nvmlShutdown", shutdown) &&
                     load(loaded, "nvmlDeviceGetCount_v2", nvml.count) &&
                     load(loaded, "nvmlDeviceGetHandleByIndex_v2", nvml.handle) &&
                     load(loaded, "nvmlDeviceGetName", nvml.name) && load(loaded, "nvmlDeviceGetPciInfo_v3", nvml.pci);
  load(loaded, "nvmlDeviceGetCpuAffinity", nvml.cpu_affinity);
  load(loaded, "nvmlDeviceGetTopologyCommonAncestor", nvml.common_ancestor);
  load(loaded, "nvmlDeviceGetP2PStatus", nvml.p2p_status);
  load(loaded, "nvmlDeviceGetNvLinkState", nvml.nvlink_state);
  load(loaded, "nvmlDeviceGetNvLinkRemoteDeviceType", nvml.nvlink_remote_type);
  load(loaded, "nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.nvlink_remote_pci);
  if (!whole) {
    unknown(str(library, " lacks functions of its API"));
  } else if (const int error = init(); error != 0) {
    // 9: the driver is not loaded; 18: library and kernel module are of different versions
    unknown(str("NVML does not start (error ", error, "): does nvidia-smi work here?"));
  } else {
    add_from_nvml(nvml, topology);
    shutdown();
  }
  ::dlclose(loaded);
}

}  // namespace skytrain::topology
