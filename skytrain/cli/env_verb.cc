#include <filesystem>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/command_line.h"
#include "skytrain/cli/env_verbs.h"
#include "skytrain/cli/machine.h"
#include "skytrain/cli/output.h"
#include "skytrain/cli/verb.h"
#include "skytrain/elastic/worker_location.h"
#include "skytrain_version.h"

namespace skytrain::cli {
namespace {

constexpr uint64_t kLittleDisk = uint64_t{1} << 30;
constexpr uint64_t kLittleMemory = uint64_t{512} << 20;

std::vector<std::string> advice(const Machine& machine, const elastic::WorkerLocation& worker, uint64_t disk_free) {
  std::vector<std::string> lines;
  if (!worker.problem.empty()) {
    try {
      elastic::require_worker(worker);
    } catch (const Error& error) {
      lines.push_back(error.problem() + ": " + error.hint());
    }
  }
  if (disk_free < kLittleDisk) {
    lines.push_back("less than 1 GiB is free in this folder: free some space, or give --runs a folder on another disk");
  }
  if (machine.memory_available_bytes < kLittleMemory) {
    lines.push_back("less than 512 MiB of memory is available: end other programs before training");
  }
  if (!machine.cpu.empty() && machine.cpu_features.empty()) {
    lines.push_back(
        "the CPU has no AVX: training will be slow; a virtual machine may hide it (CPU type \"host\" shows it)");
  }
  if (machine.gpus_on_pci > 0 && machine.gpu_devices.empty()) {
    lines.push_back(machine.gpu_driver.empty()
                        ? "an NVIDIA GPU is here without its driver: install the driver"
                        : "an NVIDIA GPU and its driver are here, but no /dev/nvidia*: run nvidia-smi once as root, or "
                          "start the container with the GPU");
  }
  return lines;
}

int show(bool json) {
  const Machine machine = this_machine();
  const elastic::WorkerLocation worker = elastic::locate_worker();
  std::error_code no_folder;  // it may have been deleted
  const std::string folder = std::filesystem::current_path(no_folder).string();
  const uint64_t disk_free = no_folder ? 0 : FileSystem::real().free_bytes(folder);
  const std::vector<std::string> lines = advice(machine, worker, disk_free);
  if (json) {
    OrderedJson out = {{"version", SKYTRAIN_VERSION},
                       {"commit", SKYTRAIN_COMMIT},
                       {"worker", {{"path", worker.path}, {"found", worker.problem.empty()}}},
                       {"disk_free_bytes", disk_free}};
    if (!worker.problem.empty()) out["worker"]["problem"] = worker.problem;
    out["machine"] = machine_json(machine);
    out["advice"] = lines;
    print_json(out);
    return 0;
  }
  TwoColumns table;
  table.row("skytrain", str(SKYTRAIN_VERSION, " (commit ", SKYTRAIN_COMMIT, ")"));
  table.row("worker", worker.path + (worker.problem.empty() ? "" : " (" + worker.problem + ")"));
  table.row("system", machine.system + ", " + machine.kernel + ", glibc " + machine.glibc);
  table.row("CPU", (machine.cpu.empty() ? "unknown model" : machine.cpu) + str(", ", machine.cores, " cores usable"));
  table.row("CPU features",
            machine.cpu_features.empty() ? "none of AVX, AVX-512, AMX" : join(machine.cpu_features, " "));
  table.row("memory", human_bytes(static_cast<double>(machine.memory_bytes)) + ", " +
                          human_bytes(static_cast<double>(machine.memory_available_bytes)) + " available");
  table.row("disk", human_bytes(static_cast<double>(disk_free)) + " free in " + folder);
  table.row("GPU", machine.gpu_devices.empty()
                       ? "none (no /dev/nvidia*)"
                       : join(machine.gpu_devices, " ") +
                             (machine.gpu_driver.empty() ? "" : ", driver " + machine.gpu_driver));
  std::string text = table.text();
  for (const std::string& line : lines) text += "\n! " + line;
  print_result(text);
  return 0;
}

}  // namespace

void add_env(CLI::App& app, Actions& actions) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print as JSON");
  actions[&app] = [json] { return show(*json); };
  add_env_topology(app, actions);
}

}  // namespace skytrain::cli
