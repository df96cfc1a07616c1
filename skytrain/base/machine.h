// skytrain/base/machine.h
//
// How much of this machine the process may use: what its CPU affinity and its container (cgroup v2) leave of the cores
// and of the memory. Every call looks anew; any thread may call.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace skytrain {

// The fewer of the CPUs in the process's affinity mask and the cgroup's cpu.max, rounded up. At least 1.
int available_cores();
// The less of /proc/meminfo's MemAvailable and what the cgroup's memory.max leaves. 0: not known.
uint64_t available_memory_bytes();
// The machine's memory, or the cgroup's limit when that is lower. 0: not known.
uint64_t total_memory_bytes();

// As uname -n says it; "" when it can't be told.
std::string host_name();

// A file of /proc, /sys or /etc: what isn't there or may not be read is unknown (""), and no error.
std::string read_or_empty(const std::string& path);
// The first value of `key` in "key : value" or "key=value" lines, without the spaces and quotes around it.
std::string_view keyed_value(std::string_view text, std::string_view key, char separator);
// Bytes of "MemTotal" or another key of /proc/meminfo's text; 0 when it is not there.
uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key);
// CPUs that a cgroup's cpu.max ("200000 100000", "max 100000") allows, rounded up; 0: no limit.
int64_t cgroup_cpus(std::string_view cpu_max);
// `bytes` bounded by what the cgroup's memory.max and memory.current leave; without a limit ("max", ""), `bytes`.
uint64_t within_cgroup_memory(uint64_t bytes, std::string_view memory_max, std::string_view memory_current);

}  // namespace skytrain
