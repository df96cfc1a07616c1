// skytrain/topology/cpu_list.h
//
// Numbers of logical CPUs as Linux writes them: "0-47,96-143", the "list" format of cpuset(7) and of
// /sys/devices/system/node/node*/cpulist. Pure functions; any thread may call.

#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skytrain::topology {

using CpuList = std::vector<int>;  // ascending, each once

constexpr int kLargestCpu = (1 << 16) - 1;

// nullopt: not such a list, or a number beyond kLargestCpu. "" is the empty list.
std::optional<CpuList> parse_cpu_list(std::string_view text);
std::string cpu_list_text(const CpuList& cpus);

bool overlap(const CpuList& a, const CpuList& b);
CpuList intersection(const CpuList& a, const CpuList& b);
CpuList united(const CpuList& a, const CpuList& b);

}  // namespace skytrain::topology
