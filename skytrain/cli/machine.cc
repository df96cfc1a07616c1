#include "skytrain/cli/machine.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "skytrain/base/machine.h"

namespace skytrain::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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

std::string cpu_model(std::string_view cpuinfo) { return std::string(keyed_value(cpuinfo, "model name", ':')); }

std::vector<std::string> cpu_features(std::string_view cpuinfo) {
  std::istringstream flags{std::string(keyed_value(cpuinfo, "flags", ':'))};
  const std::vector<std::string> present{std::istream_iterator<std::string>(flags), {}};
  std::vector<std::string> found;
  for (const char* feature : {"avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8"}) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) found.push_back(feature);
  }
  return found;
}

Machine this_machine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel = std::string(names.sysname) + " " + names.release;
  }
  machine.system = keyed_value(read_or_empty("/etc/os-release"), "PRETTY_NAME", '=');
  const std::string cpuinfo = read_or_empty("/proc/cpuinfo");
  machine.cpu = cpu_model(cpuinfo);
  machine.cpu_features = cpu_features(cpuinfo);
  machine.cores = available_cores();
  machine.memory_bytes = total_memory_bytes();
  machine.memory_available_bytes = available_memory_bytes();
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
