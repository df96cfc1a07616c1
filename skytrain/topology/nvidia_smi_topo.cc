#include "skytrain/topology/nvidia_smi_topo.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

constexpr size_t kMostDevices = 512;
constexpr const char* kHint = "give the output of: nvidia-smi topo -m";

// Without the escape sequences that a terminal was sent (the header is underlined).
std::string plain(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    out += line[i] == '\r' ? ' ' : line[i];
  }
  return out;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (words.empty() && (word == ">" || word == "|")) continue;  // quoted in a mail
    words.push_back(std::move(word));
  }
  return words;
}

bool is_numbered(std::string_view word, std::string_view prefix) {
  return word.size() > prefix.size() && word.substr(0, prefix.size()) == prefix &&
         word.find_first_not_of("0123456789", prefix.size()) == word.npos;
}

struct Table {
  std::vector<std::string> devices;  // as the header names them
  std::vector<std::string> columns;  // "CPU", "NUMA", "GPU": those behind the devices
  size_t line = 0;
};

// Whether a word of the header may name a device: GPU1, NIC0, mlx5_0. A row has a connection there: NV18, GNS.
bool may_name_device(const std::string& word) {
  return is_numbered(word, "GPU") || is_numbered(word, "NIC") || (word[0] >= 'a' && word[0] <= 'z');
}

// The header: device names, then perhaps the words of the affinity columns.
bool read_header(const std::vector<std::string>& words, Table& table) {
  if (words.size() < 2 || !is_numbered(words[0], "GPU")) return false;
  if (words[1] != "CPU" && !may_name_device(words[1])) return false;
  Table found;
  size_t i = 0;
  for (; i < words.size() && words[i] != "CPU"; ++i) found.devices.push_back(words[i]);
  for (; i < words.size(); ++i) {
    if (words[i] == "Affinity" || words[i] == "ID") continue;
    found.columns.push_back(words[i]);
    if (words[i] == "GPU") ++i;  // "GPU NUMA ID" is one column
  }
  if (found.devices.size() > kMostDevices) return false;
  if (!std::all_of(found.devices.begin(), found.devices.end(), may_name_device)) return false;
  const std::set<std::string> names(found.devices.begin(), found.devices.end());
  if (names.size() != found.devices.size()) return false;
  table = std::move(found);
  return true;
}

struct Log {
  Table table;
  std::map<std::string, std::pair<size_t, std::vector<std::string>>> rows;  // device -> line, words behind its name
  std::map<std::string, std::string> legend;                                // NIC0 -> mlx5_0
  bool several = false;
};

Log read_lines(std::string_view text, const std::string& where) {
  Log log;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = words_of(plain(text.substr(0, end)));
    text.remove_prefix(std::min(text.size(), end + 1));
    ++number;
    if (words.empty()) continue;
    if (Table table; read_header(words, table)) {
      log.several |= !log.table.devices.empty();
      if (log.table.devices.empty()) {
        log.table = std::move(table);
        log.table.line = number;
      }
      continue;
    }
    if (log.table.devices.empty() || log.several) continue;
    if (is_numbered(words[0].substr(0, words[0].find(':')), "NIC") && words[0].back() == ':' && words.size() == 2) {
      log.legend[words[0].substr(0, words[0].size() - 1)] = words[1];
      continue;
    }
    const auto& devices = log.table.devices;
    if (std::find(devices.begin(), devices.end(), words[0]) != devices.end()) {
      log.rows.emplace(words[0], std::pair(number, std::vector(words.begin() + 1, words.end())));
    }
  }
  if (log.table.devices.empty() || log.rows.empty()) {
    throw Error(ErrorKind::kData, where, "has no table of nvidia-smi topo -m", kHint);
  }
  return log;
}

[[noreturn]] void refuse_word(const std::string& where, size_t line, const std::string& device,
                              const std::string& word) {
  const std::string place = str(where, ":", line);
  for (const char* status : {"OK", "CNS", "GNS", "TNS", "NS", "U", "DR"}) {
    if (word == status) {
      throw Error(ErrorKind::kData, place,
                  "is the table of nvidia-smi topo -p2p, which says nothing of the connections", kHint);
    }
  }
  throw Error(ErrorKind::kData, place,
              str("in the row of ", printable(device, 40), ": \"", printable(word, 40), "\" is no connection"),
              "connections are X, NV#, PIX, PXB, PHB, NODE, SYS");
}

int largest_step(const CpuList& cpus, size_t begin, size_t end) {
  int step = 0;
  for (size_t i = begin + 1; i < end; ++i) step = std::max(step, cpus[i] - cpus[i - 1]);
  return step;
}

struct Affinity {
  CpuList cpus;
  int node = -1;
};

Affinity affinity_of(const Table& table, const std::vector<std::string>& words) {
  Affinity out;
  for (size_t i = 0; i < table.columns.size() && table.devices.size() + i < words.size(); ++i) {
    const std::string& word = words[table.devices.size() + i];
    const auto numbers = parse_cpu_list(word);
    if (!numbers) continue;  // N/A
    if (table.columns[i] == "CPU") out.cpus = *numbers;
    if (table.columns[i] == "NUMA" && numbers->size() == 1) out.node = numbers->front();
  }
  return out;
}

void add_cores(Topology& topology) {
  bool assumed = false;
  std::map<int, CpuList> nodes;
  CpuList all;
  for (const Gpu& gpu : topology.gpus) {
    if (gpu.numa_node >= 0) nodes[gpu.numa_node] = united(nodes[gpu.numa_node], gpu.near);
    all = united(all, gpu.near);
  }
  CpuList placed;
  const auto add = [&](const CpuList& cpus, int node) {
    const std::vector<CpuList> cores = cores_of_affinity(cpus, assumed);
    for (const CpuList& core : cores) topology.cores.push_back({-1, node, core});
    return static_cast<int>(cores.size());
  };
  for (auto& [index, cpus] : nodes) {
    CpuList own;
    std::set_difference(cpus.begin(), cpus.end(), placed.begin(), placed.end(), std::back_inserter(own));
    placed = united(placed, own);
    NumaNode node{index, -1, 0, own, 0};
    node.cores_in_all = add(own, index);
    topology.numa_nodes.push_back(std::move(node));
  }
  CpuList rest;  // of GPUs whose NUMA node is not told
  std::set_difference(all.begin(), all.end(), placed.begin(), placed.end(), std::back_inserter(rest));
  add(rest, -1);
  topology.unknown.emplace_back("sockets, caches and memory: nvidia-smi does not tell them");
  if (all.empty()) {
    topology.unknown.emplace_back("cores: the log has no CPU affinity");
  } else {
    topology.unknown.emplace_back(
        assumed ? "hyperthreads: CPUs at the same place in the two halves of an affinity are taken for one core"
                : "hyperthreads: each CPU of the affinities is taken for a core");
    topology.unknown.emplace_back("cores that are near no GPU: the log has only those in CPU affinities");
  }
}

// A NIC is on the node of a GPU that it reaches without leaving a node.
void place_nics(Topology& topology) {
  for (size_t nic = 0; nic < topology.nics.size(); ++nic) {
    for (size_t gpu = 0; gpu < topology.gpus.size(); ++gpu) {
      if (topology.to_nic(gpu, nic).link <= Link::kNode) topology.nics[nic].numa_node = topology.gpus[gpu].numa_node;
    }
  }
}

}  // namespace

std::vector<CpuList> cores_of_affinity(const CpuList& cpus, bool& assumed) {
  const size_t half = cpus.size() / 2;
  bool pairs = half > 0 && cpus.size() % 2 == 0;
  for (size_t i = 0; pairs && i < half; ++i) pairs = cpus[half + i] - cpus[i] == cpus[half] - cpus[0];
  // The gap between the halves is what tells them from one run, or from every second CPU.
  pairs = pairs && cpus[half] - cpus[half - 1] > std::max(1, largest_step(cpus, 0, half));
  std::vector<CpuList> cores;
  for (size_t i = 0; i < (pairs ? half : cpus.size()); ++i) {
    cores.push_back(pairs ? CpuList{cpus[i], cpus[half + i]} : CpuList{cpus[i]});
  }
  assumed |= pairs;
  return cores;
}

Topology parse_nvidia_smi_topo(std::string_view text, const std::string& where) {
  const Log log = read_lines(text, where);
  const std::vector<std::string>& devices = log.table.devices;
  Topology topology;
  topology.source = where + " (nvidia-smi topo -m)";
  std::vector<size_t> order;  // place in the header, GPUs first
  for (const bool gpus : {true, false}) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (is_numbered(devices[i], "GPU") == gpus) order.push_back(i);
    }
  }
  for (const size_t i : order) {
    const std::string& name = devices[i];
    const auto row = log.rows.find(name);
    if (is_numbered(name, "GPU")) {
      const Affinity affinity = row == log.rows.end() ? Affinity{} : affinity_of(log.table, row->second.second);
      topology.gpus.push_back({.name = name, .numa_node = affinity.node, .near = affinity.cpus});
    } else {
      const auto real = log.legend.find(name);
      const bool numbered = is_numbered(name, "NIC");
      topology.nics.push_back(
          {.name = real == log.legend.end() ? name : real->second, .label = numbered ? name : "", .rdma = true});
      if (numbered && real == log.legend.end()) {
        topology.unknown.push_back("the name of " + printable(name, 40) + ": the log has no NIC legend for it");
      }
    }
  }
  topology.resize_links();
  for (size_t a = 0; a < order.size(); ++a) {
    const std::string& name = devices[order[a]];
    const auto row = log.rows.find(name);
    if (row == log.rows.end()) {
      topology.unknown.push_back("the row of " + printable(name, 40) +
                                 " is missing: its connections are those of the others");
      continue;
    }
    const auto& [line, words] = row->second;
    for (size_t i = 0; i < std::min(words.size(), devices.size()); ++i) {
      if (!parse_connection(words[i])) refuse_word(where, line, name, words[i]);
    }
    if (words.size() < devices.size()) {
      throw Error(
          ErrorKind::kData, str(where, ":", line),
          str("the row of ", printable(name, 40), " has ", words.size(), " of ", devices.size(), " connections"),
          "the log is cut, or its long lines are wrapped: save it with nvidia-smi topo -m > FILE");
    }
    for (size_t b = 0; b < order.size(); ++b) {
      const Connection connection = *parse_connection(words[order[b]]);
      if ((a == b) != (connection.link == Link::kSelf)) refuse_word(where, line, name, words[order[b]]);
      if (a != b && connection.link != Link::kUnknown) topology.connect(a, b, connection);
    }
  }
  place_nics(topology);
  if (log.several) topology.unknown.emplace_back("the tables behind the first: only that is read");
  add_cores(topology);
  return topology;
}

Topology with_devices_of(Topology base, const Topology& log) {
  base.source = log.source + " on " + base.source;
  base.gpus = log.gpus;
  base.nics = log.nics;
  base.links = log.links;
  CpuList all;
  for (const Core& core : base.cores) all = united(all, core.cpus);
  for (const Gpu& gpu : base.gpus) {
    if (intersection(gpu.near, all).size() != gpu.near.size()) {
      base.unknown.push_back(gpu.name + ": its CPU affinity names CPUs that the machine does not have or may not use");
    }
  }
  return base;
}

}  // namespace skytrain::topology
