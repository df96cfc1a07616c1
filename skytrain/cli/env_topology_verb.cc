// skytrain env topology: what is in this machine, how it is connected, and what that means for ranks and NCCL.

#include <memory>
#include <optional>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/cli/env_verbs.h"
#include "skytrain/cli/output.h"
#include "skytrain/topology/binding.h"
#include "skytrain/topology/describe.h"
#include "skytrain/topology/hwloc_source.h"
#include "skytrain/topology/nccl_advice.h"
#include "skytrain/topology/nvidia_smi_topo.h"
#include "skytrain/topology/this_machine.h"

namespace skytrain::cli {
namespace {

constexpr uint64_t kLargestFile = 64 << 20;

struct TopologyFlags {
  std::string nvidia_smi, synthetic, xml, interface;
  int ranks = 0;  // 0: as many as the topology speaks for
  bool json = false;

  bool of_another_machine() const { return !nvidia_smi.empty() || !synthetic.empty() || !xml.empty(); }
};

std::string read(const std::string& path) {
  const auto info = FileSystem::real().stat(path);
  if (!info || info->type == FileInfo::Type::kDirectory) {
    throw Error(ErrorKind::kUsage, path, info ? "is a folder" : "there is no such file");
  }
  if (info->size > kLargestFile) throw Error(ErrorKind::kData, path, "is too large for a log or an export");
  return FileSystem::real().read_file(path);
}

topology::Topology look(const TopologyFlags& flags) {
  if (!flags.synthetic.empty() && !flags.xml.empty()) {
    throw Error(ErrorKind::kUsage, "env topology", "--synthetic and --xml both give the cores", "give one of them");
  }
  std::optional<topology::Topology> cores;
  if (!flags.synthetic.empty()) cores = topology::read_synthetic(flags.synthetic);
  if (!flags.xml.empty()) cores = topology::read_hwloc_xml(read(flags.xml), flags.xml);
  if (flags.nvidia_smi.empty()) return cores ? *cores : topology::read_this_machine();
  const topology::Topology log = topology::parse_nvidia_smi_topo(read(flags.nvidia_smi), flags.nvidia_smi);
  return cores ? topology::with_devices_of(*cores, log) : log;
}

int show(const TopologyFlags& flags) {
  if (flags.of_another_machine() && !flags.interface.empty()) {
    throw Error(ErrorKind::kUsage, "env topology", "--interface is of this machine, the file is of another");
  }
  const topology::Topology machine = look(flags);
  const topology::Surroundings surroundings =
      flags.of_another_machine() ? topology::Surroundings{} : topology::read_surroundings(flags.interface);
  const topology::BindingPlan plan =
      topology::plan_binding(machine, flags.ranks > 0 ? flags.ranks : topology::default_ranks(machine));
  const topology::NcclAdvice advice = topology::advise_nccl(machine, surroundings);
  if (flags.json) {
    OrderedJson out = topology::topology_json(machine);
    out["binding"] = topology::binding_json(machine, plan);
    out["nccl"] = topology::nccl_json(advice);
    if (surroundings.interface) {
      out["interface"] = surroundings.interface->empty() ? OrderedJson() : OrderedJson(*surroundings.interface);
    }
    print_json(out);
    return 0;
  }
  std::string text = topology::tree_text(machine);
  if (const std::string matrix = topology::matrix_text(machine); !matrix.empty()) text += "\nconnections\n" + matrix;
  text += "\nbinding\n" + topology::binding_text(machine, plan);
  if (const std::string nccl = topology::nccl_text(advice); !nccl.empty()) text += "\nNCCL\n" + nccl;
  print_result(text);
  return 0;
}

}  // namespace

void add_env_topology(CLI::App& app, Actions& actions) {
  CLI::App* sub = app.add_subcommand("topology", "Show how GPUs, NICs and cores are connected, and where to run ranks");
  add_help_flag(*sub, "skytrain env topology --ranks 8\n  skytrain env topology --from-nvidia-smi topo.txt");
  auto flags = std::make_shared<TopologyFlags>();
  sub->add_option("--ranks", flags->ranks, "Ranks to bind (default: the GPUs, else the NUMA nodes)")
      ->check(CLI::Range(1, topology::kMostRanks))
      ->type_name("N");
  sub->add_option("--from-nvidia-smi", flags->nvidia_smi, "Look at a saved `nvidia-smi topo -m` of another machine")
      ->type_name("FILE");
  sub->add_option("--synthetic", flags->synthetic, "Sockets and cores as hwloc describes them: \"pack:2 core:16 pu:2\"")
      ->type_name("DESCRIPTION");
  sub->add_option("--xml", flags->xml, "Look at an export of lstopo of another machine")->type_name("FILE");
  sub->add_option("--interface", flags->interface, "Network interface for NCCL, in place of the default route's")
      ->type_name("NAME");
  sub->add_flag("--json", flags->json, "Print as JSON");
  actions[sub] = [flags] { return show(*flags); };
}

}  // namespace skytrain::cli
