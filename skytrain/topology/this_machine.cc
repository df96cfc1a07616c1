#include "skytrain/topology/this_machine.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/text.h"
#include "skytrain/topology/default_interface.h"
#include "skytrain/topology/hwloc_source.h"
#include "skytrain/topology/nvml.h"

namespace skytrain::topology {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string first_line(const std::string& path) {
  const std::string text = read_or_empty(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace

void add_nic_states(Topology& topology, const std::string& sys) {
  for (Nic& nic : topology.nics) {
    if (!nic.rdma) {
      const std::string state = first_line(sys + "/class/net/" + nic.name + "/operstate");
      if (state == "up" || state == "down") nic.active = state == "up";
      continue;
    }
    const std::string ports = sys + "/class/infiniband/" + nic.name + "/ports";
    for (const std::string& port : names_in(ports)) {
      const std::string state = first_line(str(ports, "/", port, "/state"));  // "4: ACTIVE"
      if (state.empty()) continue;
      nic.active = nic.active.value_or(false) || state.rfind("4:", 0) == 0;
      nic.link_layer = first_line(str(ports, "/", port, "/link_layer"));
    }
  }
}

Topology read_this_machine() {
  Topology topology = read_this_system();
  add_from_nvml_library(topology);
  add_nic_states(topology, "/sys");
  std::error_code error;
  if (!std::filesystem::exists("/sys/bus/pci/devices", error)) {
    topology.unknown.emplace_back("PCI devices: /sys/bus/pci is not here");
  }
  const int quota = available_cores();
  size_t cpus = 0;
  for (const Core& core : topology.cores) cpus += core.cpus.size();
  if (static_cast<size_t>(quota) < cpus) {
    topology.unknown.push_back(str("which cores the container's quota of ", quota, " CPUs' time is for: any of ", cpus,
                                   ", so binding may not pay"));
  }
  return topology;
}

Surroundings read_surroundings(std::string_view interface) {
  Surroundings out;
  const auto chosen = default_interface(this_machines_routes(), "", interface);
  out.interface = chosen ? chosen->name : "";
  out.interface_reason = chosen ? chosen->reason : "";
  const std::vector<std::string> present = names_in("/sys/class/net");
  if (!interface.empty() && !present.empty() && std::find(present.begin(), present.end(), interface) == present.end()) {
    throw Error(ErrorKind::kUsage, "--interface", str("there is no interface \"", printable(interface, 40), "\""),
                "there are: " + join(present, ", "));
  }
  struct statvfs info {};
  out.shared_memory_bytes = ::statvfs("/dev/shm", &info) == 0 ? uint64_t{info.f_frsize} * info.f_blocks : 0;
  out.verbs_devices = false;
  for (const std::string& name : names_in("/dev/infiniband")) {
    if (name.rfind("uverbs", 0) == 0) out.verbs_devices = true;
  }
  return out;
}

}  // namespace skytrain::topology
