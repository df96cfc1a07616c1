// skytrain/cli/machine.h
//
// What this machine offers, found without loading LibTorch: for `skytrain env` and for a run's record.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::cli {

struct Machine {
  std::string host, system, kernel;       // system: PRETTY_NAME of os-release
  std::string cpu;                        // model name, "" where /proc/cpuinfo has none
  int64_t cores = 0;                      // that this process may use: affinity and the container's quota
  std::vector<std::string> cpu_features;  // of those that matter to training: avx2, avx512f, …
  uint64_t memory_bytes = 0;              // of the machine, or the container's limit when that is lower
  uint64_t memory_available_bytes = 0;
  std::string glibc;
  std::vector<std::string> gpu_devices;  // device nodes: /dev/nvidia0, …
  std::string gpu_driver;                // version, "" without one
  int64_t gpus_on_pci = 0;               // NVIDIA GPUs that the bus shows, with or without a driver
};

Machine this_machine();
OrderedJson machine_json(const Machine& machine);

// Of the text of /proc/cpuinfo.
std::string cpu_model(std::string_view cpuinfo);
std::vector<std::string> cpu_features(std::string_view cpuinfo);

}  // namespace skytrain::cli
