// skytrain/topology/nvidia_smi_topo.h
//
// Reads what `nvidia-smi topo -m` printed, from a log that people paste: among other lines, with tabs turned into
// spaces, with the colours of a terminal. The format is that of the tool's own legend and of NVIDIA's documentation
// (nvidia-smi, "topo" command; https://docs.nvidia.com/deploy/nvidia-smi/index.html): a header of devices followed by
// "CPU Affinity", "NUMA Affinity" and "GPU NUMA ID" (as far as the driver has them), a row a device, and a "NIC
// Legend". Older drivers name the NICs in the header itself and say SOC for SYS. Pure; any thread may call.

#pragma once
#include <string>
#include <string_view>

#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// The cores are those in the affinities of the GPUs. The log says neither sockets nor which CPUs are hyperthreads of
// one core: where an affinity is two runs of the same length ("0-47,96-143"), CPUs at the same place in them are taken
// for one core, as Linux numbers them on x86; `unknown` says so. where: the file's name, for messages. Throws
// Error(kData): no such table, a row that is cut or wrapped, a word that is no connection, another matrix.
Topology parse_nvidia_smi_topo(std::string_view text, const std::string& where);

// The CPUs of a log as cores, by the rule above. assumed: set when it paired any.
std::vector<CpuList> cores_of_affinity(const CpuList& cpus, bool& assumed);

// GPUs, NICs and links of `log` on the sockets and cores of `base`, for a machine known by both.
Topology with_devices_of(Topology base, const Topology& log);

}  // namespace skytrain::topology
