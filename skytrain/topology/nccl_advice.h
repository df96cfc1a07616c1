// skytrain/topology/nccl_advice.h
//
// Which of NCCL's environment variables a topology speaks for, each with its reason. Names, values and meanings are
// those of NVIDIA's NCCL documentation, https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html:
//   NCCL_SOCKET_IFNAME  interfaces for IP; "=eth0" is exactly that one. By itself NCCL takes one whose name begins with
//   ib,
//                       and lo and docker* only when there is no other
//   NCCL_IB_HCA         RDMA devices; "=mlx5_0,mlx5_1" are exactly those
//   NCCL_IB_DISABLE     1: no InfiniBand or RoCE, IP sockets instead
//   NCCL_P2P_LEVEL      how far apart two GPUs may be for direct access: LOC NVL PIX PXB PHB SYS; unset: NCCL chooses
//   NCCL_NET_GDR_LEVEL  how far a NIC may be from a GPU for GPUDirect RDMA: LOC PIX PXB PHB SYS; unset: NCCL chooses
//   NCCL_SHM_DISABLE    1: no shared memory between GPUs without direct access, but the network
// The same page warns against keeping the variables of its "Debugging" section (the last four here) without a need: so
// what is not certain is advised as something to try, and where NCCL's own choice fits, nothing is set. That containers
// need more of /dev/shm (--shm-size=1g) is on its page troubleshooting.html, "Shared memory".
// Pure; any thread may call.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// What NCCL meets beside the hardware. Unset is unknown, as for a log of another machine.
struct Surroundings {
  std::optional<std::string> interface;         // of the default route; "" when there is none
  std::string interface_reason;                 // as ChosenInterface has it
  std::optional<uint64_t> shared_memory_bytes;  // size of /dev/shm; 0: not mounted
  std::optional<bool> verbs_devices;            // whether /dev/infiniband/uverbs* are there
};

struct NcclSetting {
  // kSet: export it. kTry: measure with and without. kLeave: NCCL's own choice fits, and the reason says why.
  enum class Strength { kSet, kTry, kLeave } strength = Strength::kSet;
  std::string name, value, reason;  // value: "" of kLeave
};

struct NcclAdvice {
  std::vector<NcclSetting> settings;
  std::vector<std::string> notes;  // what to do that is no variable
};

// Nothing for a machine without GPUs.
NcclAdvice advise_nccl(const Topology& topology, const Surroundings& surroundings);

std::string_view strength_name(NcclSetting::Strength strength);  // "set", "try", "leave"

}  // namespace skytrain::topology
