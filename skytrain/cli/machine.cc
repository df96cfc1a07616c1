#include "skytrain/cli/machine.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace skytrain::cli {
namespace {

// Files of /proc, /sys and /etc: what is not there or may not be read is unknown, and no error.
std::string read_or_empty(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "key : value" or "key=value" lines: the first value of `key`.
std::string_view value_of(std::string_view text, std::string_view key, char separator) {
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

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
  if (const int64_t quota = cgroup_cpus(read_or_empty("/sys/fs/cgroup/cpu.max")); quota > 0) {
    cores = std::min(cores, quota);
  }
  return cores;
}

std::vector<std::string> gpu_device_nodes() {
  std::vector<std::string> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    const std::string_view digits = std::string_view(name).substr(std::min<size_t>(name.size(), 6));
    if (name.rfind("nvidia", 0) == 0 && !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos) {
      nodes.push_back(entry.path().string());
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

int64_t nvidia_gpus_on_pci() {
  int64_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    const bool nvidia = first_line(read_or_empty(entry.path() / "vendor")) == "0x10de";
    const bool display = read_or_empty(entry.path() / "class").rfind("0x03", 0) == 0;  // VGA or 3D controller
    count += nvidia && display;
  }
  return count;
}

}  // namespace

std::string cpu_model(std::string_view cpuinfo) { return std::string(value_of(cpuinfo, "model name", ':')); }

std::vector<std::string> cpu_features(std::string_view cpuinfo) {
  std::istringstream flags{std::string(value_of(cpuinfo, "flags", ':'))};
  const std::vector<std::string> present{std::istream_iterator<std::string>(flags), {}};
  std::vector<std::string> found;
  for (const char* feature : {"avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8"}) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) found.push_back(feature);
  }
  return found;
}

uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key) {
  return number(value_of(meminfo, key, ':')) * 1024;
}

int64_t cgroup_cpus(std::string_view cpu_max) {
  const size_t space = cpu_max.find(' ');
  if (space == std::string_view::npos) return 0;
  const uint64_t quota = number(cpu_max), period = number(cpu_max.substr(space + 1));
  if (quota == 0 || period == 0) return 0;  // "max"
  return static_cast<int64_t>((quota + period - 1) / period);
}

Machine this_machine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel = std::string(names.sysname) + " " + names.release;
  }
  machine.system = value_of(read_or_empty("/etc/os-release"), "PRETTY_NAME", '=');
  const std::string cpuinfo = read_or_empty("/proc/cpuinfo");
  machine.cpu = cpu_model(cpuinfo);
  machine.cpu_features = cpu_features(cpuinfo);
  machine.cores = usable_cores();
  const std::string meminfo = read_or_empty("/proc/meminfo");
  machine.memory_bytes = meminfo_bytes(meminfo, "MemTotal");
  machine.memory_available_bytes = meminfo_bytes(meminfo, "MemAvailable");
  if (const uint64_t limit = number(read_or_empty("/sys/fs/cgroup/memory.max")); limit > 0) {
    const uint64_t used = number(read_or_empty("/sys/fs/cgroup/memory.current"));
    machine.memory_bytes = std::min(machine.memory_bytes, limit);
    machine.memory_available_bytes = std::min(machine.memory_available_bytes, limit - std::min(limit, used));
  }
  machine.glibc = ::gnu_get_libc_version();
  machine.gpu_devices = gpu_device_nodes();
  machine.gpu_driver = first_line(read_or_empty("/sys/module/nvidia/version"));
  machine.gpus_on_pci = nvidia_gpus_on_pci();
  return machine;
}

OrderedJson machine_json(const Machine& m) {
  return {{"name", m.host},
          {"system", m.system},
          {"kernel", m.kernel},
          {"glibc", m.glibc},
          {"cpu", m.cpu},
          {"cores", m.cores},
          {"cpu_features", m.cpu_features},
          {"memory_bytes", m.memory_bytes},
          {"memory_available_bytes", m.memory_available_bytes},
          {"gpu_devices", m.gpu_devices},
          {"gpu_driver", m.gpu_driver.empty() ? OrderedJson() : OrderedJson(m.gpu_driver)},
          {"gpus_on_pci", m.gpus_on_pci}};
}

}  // namespace skytrain::cli
