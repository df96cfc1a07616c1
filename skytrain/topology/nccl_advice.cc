#include "skytrain/topology/nccl_advice.h"

#include <algorithm>
#include <array>
#include <set>

#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

using Strength = NcclSetting::Strength;

constexpr uint64_t kRecommendedShared = uint64_t{1} << 30;  // --shm-size=1g of the documentation
constexpr uint64_t kSharedOfARank = uint64_t{16} << 20;     // below that for each GPU, segments of some MiB do not fit

bool is_efa(const Nic& nic) { return nic.name.rfind("efa", 0) == 0 || nic.name.rfind("rdmap", 0) == 0; }

class Adviser {
 public:
  Adviser(const Topology& topology, const Surroundings& surroundings)
      : topology_(topology), surroundings_(surroundings) {
    for (size_t i = 0; i < topology.nics.size(); ++i) {
      if (topology.nics[i].rdma && !is_efa(topology.nics[i])) rdma_.push_back(i);
      efa_ |= topology.nics[i].rdma && is_efa(topology.nics[i]);
    }
  }

  NcclAdvice advise() {
    if (topology_.gpus.empty()) return {};
    interface();
    rdma();
    peer_access();
    shared_memory();
    return std::move(advice_);
  }

 private:
  void add(Strength strength, std::string name, std::string value, std::string reason) {
    advice_.settings.push_back({strength, std::move(name), std::move(value), std::move(reason)});
  }

  void interface() {
    if (!surroundings_.interface) return;
    if (!surroundings_.interface->empty()) {
      return add(Strength::kSet, "NCCL_SOCKET_IFNAME", "=" + *surroundings_.interface, surroundings_.interface_reason);
    }
    advice_.notes.emplace_back(
        "there is no default route: set NCCL_SOCKET_IFNAME to the interface that the nodes see each other by");
  }

  void rdma() {
    if (efa_) {
      advice_.notes.emplace_back("EFA: NCCL uses it through the plug-in aws-ofi-nccl; NCCL_IB_* do not apply to it");
      if (rdma_.empty()) return;
    }
    if (rdma_.empty()) {
      return add(Strength::kSet, "NCCL_IB_DISABLE", "1",
                 str(surroundings_.verbs_devices ? "there is no RDMA device" : "no RDMA device is shown",
                     ": IP sockets at once"));
    }
    if (surroundings_.verbs_devices == false) {
      add(Strength::kSet, "NCCL_IB_DISABLE", "1",
          str("there are RDMA devices (", topology_.nics[rdma_.front()].name,
              ", …), but no /dev/infiniband: they can't be used here"));
      advice_.notes.emplace_back(
          "start the container with --device=/dev/infiniband and --ulimit memlock=-1, and RDMA works");
      return;
    }
    std::vector<size_t> up;
    std::vector<std::string> down;
    for (const size_t nic : rdma_) {
      if (topology_.nics[nic].active.value_or(true))
        up.push_back(nic);
      else
        down.push_back(topology_.nics[nic].name);
    }
    if (up.empty()) {
      return add(Strength::kSet, "NCCL_IB_DISABLE", "1", "no RDMA device has an active port: " + join(down, ", "));
    }
    devices(up, down);
    direct_rdma(up);
  }

  Link to_nic(size_t gpu, size_t nic) const { return topology_.to_nic(gpu, nic).link; }

  // The RDMA devices that are nearest to a GPU.
  std::vector<size_t> rails(const std::vector<size_t>& up) const {
    std::set<size_t> near;
    for (size_t gpu = 0; gpu < topology_.gpus.size(); ++gpu) {
      Link best = Link::kUnknown;
      for (const size_t nic : up) best = std::min(best, to_nic(gpu, nic));
      for (const size_t nic : up) {
        if (to_nic(gpu, nic) == best) near.insert(nic);
      }
    }
    return {near.begin(), near.end()};
  }

  void devices(const std::vector<size_t>& up, const std::vector<std::string>& down) {
    const std::vector<size_t> near = rails(up);
    std::vector<std::string> names, unnamed, reasons;
    for (const size_t nic : near) {
      names.push_back(topology_.nics[nic].name);
      if (topology_.nics[nic].name == topology_.nics[nic].label) unnamed.push_back(topology_.nics[nic].label);
    }
    std::vector<std::string> far;
    for (const size_t nic : up) {
      if (std::find(near.begin(), near.end(), nic) == near.end()) far.push_back(topology_.nics[nic].name);
    }
    if (!far.empty()) reasons.push_back("nearest to the GPUs; farther: " + join(far, ", "));
    if (!down.empty()) reasons.push_back("down: " + join(down, ", "));
    if (reasons.empty()) {
      return add(Strength::kLeave, "NCCL_IB_HCA", "", "NCCL takes all RDMA devices, and each is nearest to a GPU");
    }
    if (!unnamed.empty()) {
      advice_.notes.push_back("NCCL_IB_HCA needs the real names of " + join(unnamed, ", ") +
                              ": ibv_devices lists them");
      return;
    }
    add(Strength::kSet, "NCCL_IB_HCA", "=" + join(names, ","), join(reasons, "; "));
  }

  void direct_rdma(const std::vector<size_t>& up) {
    std::vector<std::string> far;
    bool behind_switches = true;
    for (size_t gpu = 0; gpu < topology_.gpus.size(); ++gpu) {
      Link best = Link::kUnknown;
      for (const size_t nic : up) best = std::min(best, to_nic(gpu, nic));
      behind_switches = behind_switches && best <= Link::kPxb;
      if (best == Link::kPhb || best == Link::kNode) far.push_back(topology_.gpus[gpu].name);
    }
    if (behind_switches) {
      return add(Strength::kLeave, "NCCL_NET_GDR_LEVEL", "",
                 "each GPU has an RDMA device behind the same PCIe switches, where NCCL uses GPUDirect RDMA by itself");
    }
    if (far.empty()) return;
    add(Strength::kTry, "NCCL_NET_GDR_LEVEL", "PHB",
        "the nearest RDMA device of " + join(far, ", ") +
            " is behind the CPU of the same NUMA node: GPUDirect RDMA may pay there; needs nvidia-peermem or DMA-BUF");
  }

  void peer_access() {
    const size_t gpus = topology_.gpus.size();
    if (gpus < 2) return;
    std::array<size_t, static_cast<size_t>(Link::kUnknown) + 1> pairs{};
    size_t refused = 0, allowed = 0, all = 0;
    for (size_t a = 0; a < gpus; ++a) {
      for (size_t b = a + 1; b < gpus; ++b) {
        const Connection& connection = topology_.connection(a, b);
        ++pairs[static_cast<size_t>(connection.link)];
        refused += connection.p2p == false;
        allowed += connection.p2p == true;
        ++all;
      }
    }
    const auto number = [&](Link link) { return pairs[static_cast<size_t>(link)]; };
    const std::string name = "NCCL_P2P_LEVEL";
    if (refused == all) {
      return add(Strength::kLeave, name, "",
                 "the driver allows no direct access between these GPUs: NCCL goes through host memory");
    }
    if (number(Link::kNvLink) == all) return add(Strength::kLeave, name, "", "all pairs of GPUs have NVLink");
    if (number(Link::kNvLink) > 0) {
      return add(Strength::kLeave, name, "",
                 str(number(Link::kNvLink), " of ", all,
                     " pairs of GPUs have NVLink, which NCCL's rings follow by themselves"));
    }
    if (number(Link::kPix) + number(Link::kPxb) == all) {
      return add(Strength::kLeave, name, "",
                 "all GPUs are behind the same PCIe switches: NCCL uses direct access there");
    }
    const size_t through_cpu = number(Link::kPhb) + number(Link::kNode);
    if (through_cpu == 0) return;
    add(Strength::kTry, name, "PHB",
        str(through_cpu, " of ", all,
            " pairs of GPUs meet at the CPU of one NUMA node, without NVLink; direct access there ",
            allowed > 0 ? "is allowed by the driver, and may be faster or slower than host memory"
                        : "may pay where the driver allows it (nvidia-smi topo -p2p r says OK)"));
  }

  void shared_memory() {
    const size_t gpus = topology_.gpus.size();
    if (gpus < 2 || !surroundings_.shared_memory_bytes) return;
    const uint64_t bytes = *surroundings_.shared_memory_bytes;
    if (bytes >= kRecommendedShared) return;
    const std::string size =
        bytes == 0 ? "/dev/shm is missing" : "/dev/shm has " + human_bytes(static_cast<double>(bytes));
    advice_.notes.push_back(size +
                            ": NCCL's documentation advises 1 GiB in a container (--shm-size=1g, or --ipc=host)");
    if (bytes >= kSharedOfARank * gpus) return;
    add(Strength::kSet, "NCCL_SHM_DISABLE", "1",
        size + str(", too little for ", gpus, " GPUs; slower, and not needed once there is more"));
  }

  const Topology& topology_;
  const Surroundings& surroundings_;
  std::vector<size_t> rdma_;
  bool efa_ = false;
  NcclAdvice advice_;
};

}  // namespace

NcclAdvice advise_nccl(const Topology& topology, const Surroundings& surroundings) {
  return Adviser(topology, surroundings).advise();
}

std::string_view strength_name(Strength strength) {
  switch (strength) {
    case Strength::kSet:
      return "set";
    case Strength::kTry:
      return "try";
    case Strength::kLeave:
      return "leave";
  }
  return "";
}

}  // namespace skytrain::topology
