// skytrain/topology/describe.h
//
// A topology, a binding and NCCL's settings as text for people and as JSON. Pure; any thread may call.

#pragma once
#include <string>

#include "skytrain/base/json.h"
#include "skytrain/topology/binding.h"
#include "skytrain/topology/nccl_advice.h"
#include "skytrain/topology/topology.h"

namespace skytrain::topology {

// Each ends with a newline, or is "" when there is nothing to show.
std::string tree_text(const Topology& topology);    // sockets, NUMA nodes, PCIe switches, devices
std::string matrix_text(const Topology& topology);  // device by device, as nvidia-smi topo -m has it, and a legend
std::string binding_text(const Topology& topology, const BindingPlan& plan);
std::string nccl_text(const NcclAdvice& advice);

OrderedJson topology_json(const Topology& topology);
OrderedJson binding_json(const Topology& topology, const BindingPlan& plan);
OrderedJson nccl_json(const NcclAdvice& advice);

// Devices that PIX and PXB connect are behind the same switches: a number for each such group of two or more, in the
// order of their first devices; -1 for the others.
std::vector<int> switch_of_devices(const Topology& topology);

}  // namespace skytrain::topology
