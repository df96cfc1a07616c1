// skytrain/topology/nvml.h
//
// What the NVIDIA driver knows and sysfs doesn't: which GPUs this process sees, their models, NVLinks, and whether two
// may access each other's memory. NVML (libnvidia-ml.so.1) is loaded when it is asked, and is no dependency.
//
// The declarations follow NVIDIA's NVML API reference, https://docs.nvidia.com/deploy/nvml-api/: "Initialization and
// Cleanup", "Device Queries" (nvmlDeviceGet*: Count_v2, HandleByIndex_v2, Name, PciInfo_v3, CpuAffinity,
// TopologyCommonAncestor, P2PStatus), "NvLink Methods" (group__NvLink.html), nvmlPciInfo_t, nvmlGpuTopologyLevel_t.
// One thread at a time.

#pragma once
#include <functional>
#include <string>

#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:1B:00.0"
};

// The functions used. Each returns an nvmlReturn_t, where 0 is success; a handle is opaque. Those marked may be
// missing.
struct NvmlApi {
  std::function<int(unsigned* count)> count;
  std::function<int(unsigned index, void** device)> handle;
  std::function<int(void* device, char* name, unsigned length)> name;
  std::function<int(void* device, NvmlPciInfo* pci)> pci;
  std::function<int(void* device, unsigned words, unsigned long* set)> cpu_affinity;    // may be missing
  std::function<int(void* a, void* b, int* level)> common_ancestor;                     // may be missing
  std::function<int(void* a, void* b, int index, int* status)> p2p_status;              // may be missing
  std::function<int(void* device, unsigned link, int* active)> nvlink_state;            // may be missing
  std::function<int(void* device, unsigned link, int* type)> nvlink_remote_type;        // may be missing
  std::function<int(void* device, unsigned link, NvmlPciInfo* pci)> nvlink_remote_pci;  // may be missing
};

// GPUs that the driver shows take the place of those on the PCI bus, which lend them their bridges; those that it does
// not show (another container's) leave the topology, with a word in `unknown`. Links between GPUs become the driver's.
void add_from_nvml(const NvmlApi& nvml, Topology& topology);

// Loads the library, asks it and closes it. Without one, or when it can't start, `topology` stays as it is, with the
// reason in `unknown` if it has GPUs.
void add_from_nvml_library(Topology& topology, const char* library = "libnvidia-ml.so.1");

}  // namespace skytrain::topology
