#include "skytrain/base/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace skytrain {
namespace {

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

std::string read_or_empty(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string_view keyed_value(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t at = line.find(separator);
    if (at == std::string_view::npos) continue;
    std::string_view name = line.substr(0, at), value = line.substr(at + 1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    if (name != key) continue;
    const size_t begin = value.find_first_not_of(" \t\"");
    if (begin == std::string_view::npos) return "";
    value.remove_prefix(begin);
    while (!value.empty() && (value.back() == ' ' || value.back() == '"')) value.remove_suffix(1);
    return value;
  }
  return "";
}

uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key) {
  return number(keyed_value(meminfo, key, ':')) * 1024;
}

int64_t cgroup_cpus(std::string_view cpu_max) {
  const size_t space = cpu_max.find(' ');
  if (space == std::string_view::npos) return 0;
  const uint64_t quota = number(cpu_max), period = number(cpu_max.substr(space + 1));
  if (quota == 0 || period == 0) return 0;  // "max"
  return static_cast<int64_t>((quota + period - 1) / period);
}

uint64_t within_cgroup_memory(uint64_t bytes, std::string_view memory_max, std::string_view memory_current) {
  const uint64_t limit = number(memory_max);
  if (limit == 0) return bytes;
  return std::min(bytes, limit - std::min(limit, number(memory_current)));
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
  if (const int64_t quota = cgroup_cpus(read_or_empty("/sys/fs/cgroup/cpu.max")); quota > 0) {
    cores = std::min(cores, quota);
  }
  return static_cast<int>(std::max<int64_t>(1, cores));
}

uint64_t available_memory_bytes() {
  return within_cgroup_memory(meminfo_bytes(read_or_empty("/proc/meminfo"), "MemAvailable"),
                              read_or_empty("/sys/fs/cgroup/memory.max"),
                              read_or_empty("/sys/fs/cgroup/memory.current"));
}

uint64_t total_memory_bytes() {
  return within_cgroup_memory(meminfo_bytes(read_or_empty("/proc/meminfo"), "MemTotal"),
                              read_or_empty("/sys/fs/cgroup/memory.max"), "0");
}

}  // namespace skytrain
