#include "skytrain/topology/describe.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

std::string counted(size_t count, const char* one, const char* many) {
  return str(count, " ", count == 1 ? one : many);
}

size_t threads_of(const std::vector<Core>& cores) {
  size_t threads = 0;
  for (const Core& core : cores) threads += core.cpus.size();
  return threads;
}

std::string device_text(const Topology& topology, size_t device) {
  std::vector<std::string> parts;
  if (device < topology.gpus.size()) {
    const Gpu& gpu = topology.gpus[device];
    parts = {gpu.name, gpu.model, gpu.pci};
  } else {
    const Nic& nic = topology.nics[device - topology.gpus.size()];
    std::vector<std::string> facts;
    if (nic.rdma) facts.push_back("RDMA" + (nic.link_layer.empty() ? "" : " over " + nic.link_layer));
    if (!nic.label.empty() && nic.label != nic.name) facts.push_back(nic.label);
    if (nic.rdma && !nic.interfaces.empty()) facts.push_back(join(nic.interfaces, " "));
    if (nic.active) facts.emplace_back(*nic.active ? "up" : "down");
    parts = {nic.name, join(facts, ", "), nic.pci};
  }
  std::erase_if(parts, [](const std::string& part) { return part.empty(); });
  return printable(join(parts, "  "), 300);
}

int node_of(const Topology& topology, size_t device) {
  return device < topology.gpus.size() ? topology.gpus[device].numa_node
                                       : topology.nics[device - topology.gpus.size()].numa_node;
}

// The bridges that all devices of a group share end with their switch's.
std::string switch_name(const Topology& topology, const std::vector<size_t>& devices) {
  std::vector<std::string> shared;
  for (size_t i = 0; i < devices.size(); ++i) {
    const size_t d = devices[i];
    const auto& bridges =
        d < topology.gpus.size() ? topology.gpus[d].bridges : topology.nics[d - topology.gpus.size()].bridges;
    if (i == 0) shared = bridges;
    const auto end = std::mismatch(shared.begin(), shared.end(), bridges.begin(), bridges.end()).first;
    shared.erase(end, shared.end());
  }
  return shared.size() < 2 ? "PCIe switch" : "PCIe switch " + shared.back();
}

class Tree {
 public:
  explicit Tree(const Topology& topology) : topology_(topology), switches_(switch_of_devices(topology)) {}

  std::string text() {
    std::vector<std::string> counts;
    const auto count = [&](size_t number, const char* one, const char* many) {
      if (number > 0) counts.push_back(counted(number, one, many));
    };
    count(topology_.packages.size(), "socket", "sockets");
    count(topology_.numa_nodes.size(), "NUMA node", "NUMA nodes");
    count(topology_.cores.size(), "core", "cores");
    if (threads_of(topology_.cores) > topology_.cores.size()) {
      counts.back() += str(" (", threads_of(topology_.cores), " CPUs)");
    }
    count(topology_.gpus.size(), "GPU", "GPUs");
    count(topology_.nics.size(), "NIC", "NICs");
    line(0, printable(topology_.source, 300) + ": " + (counts.empty() ? "nothing is known" : join(counts, ", ")));
    for (const Package& package : topology_.packages) {
      line(1, str("socket ", package.index, package.model.empty() ? "" : "  " + printable(package.model)));
      nodes_of(package.index, 2);
    }
    nodes_of(-1, 1);
    devices_of(-1, 1);  // whose node is not known, or not among those that are
    return out_;
  }

 private:
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<size_t>(2 * depth), ' ') + text + "\n";
  }

  void nodes_of(int package, int depth) {
    for (const NumaNode& node : topology_.numa_nodes) {
      if (node.package != package) continue;
      const auto cores = std::count_if(topology_.cores.begin(), topology_.cores.end(),
                                       [&](const Core& core) { return core.numa_node == node.index; });
      std::string text = str("NUMA node ", node.index, "  ", counted(static_cast<size_t>(cores), "core", "cores"));
      if (cores < node.cores_in_all) text += str(" of ", node.cores_in_all, " may be used");
      if (!node.cpus.empty()) text += ", CPUs " + cpu_list_text(node.cpus);
      if (node.memory_bytes > 0) text += ", " + human_bytes(static_cast<double>(node.memory_bytes));
      line(depth, text);
      devices_of(node.index, depth + 1);
    }
  }

  bool known_node(int node) const {
    return std::any_of(topology_.numa_nodes.begin(), topology_.numa_nodes.end(),
                       [&](const NumaNode& each) { return each.index == node; });
  }

  // A switch is shown with all that is behind it, at the node of its first device whose node is known.
  int node_of_group(const std::vector<size_t>& devices) const {
    for (const size_t device : devices) {
      if (known_node(node_of(topology_, device))) return node_of(topology_, device);
    }
    return -1;
  }

  void devices_of(int node, int depth) {
    for (size_t device = 0; device < topology_.devices(); ++device) {
      std::vector<size_t> group;
      for (size_t other = device; other < topology_.devices(); ++other) {
        if (other == device || (switches_[device] >= 0 && switches_[other] == switches_[device]))
          group.push_back(other);
      }
      if (shown_.count(device) > 0 || node_of_group(group) != node) continue;
      if (group.size() > 1) line(depth, switch_name(topology_, group));
      for (const size_t each : group) {
        line(depth + (group.size() > 1 ? 1 : 0), device_text(topology_, each));
        shown_.insert(each);
      }
    }
  }

  const Topology& topology_;
  std::vector<int> switches_;
  std::set<size_t> shown_;
  std::string out_;
};

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - display_width(row[i]) + 2, ' ');
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string list_text(const std::vector<int>& numbers) { return numbers.empty() ? "?" : cpu_list_text(numbers); }

}  // namespace

std::vector<int> switch_of_devices(const Topology& topology) {
  std::vector<int> group(topology.devices(), -1);
  int groups = 0;
  for (size_t first = 0; first < topology.devices(); ++first) {
    if (group[first] >= 0) continue;
    std::vector<size_t> behind = {first};
    for (size_t i = 0; i < behind.size(); ++i) {
      for (size_t other = 0; other < topology.devices(); ++other) {
        const Link link = topology.connection(behind[i], other).link;
        if (link != Link::kPix && link != Link::kPxb) continue;
        if (std::find(behind.begin(), behind.end(), other) == behind.end()) behind.push_back(other);
      }
    }
    if (behind.size() < 2) continue;
    for (const size_t device : behind) group[device] = groups;
    ++groups;
  }
  return group;
}

std::string tree_text(const Topology& topology) {
  std::string out = Tree(topology).text();
  for (const std::string& what : topology.unknown) out += "? " + what + "\n";
  return out;
}

std::string matrix_text(const Topology& topology) {
  static const std::vector<std::pair<std::string, std::string>> legend = {
      {"NV#", "a bonded set of # NVLinks"},
      {"PIX", "at most one PCIe bridge"},
      {"PXB", "several PCIe bridges, not the CPU"},
      {"PHB", "a PCIe host bridge: the CPU"},
      {"NODE", "between host bridges of a NUMA node"},
      {"SYS", "between NUMA nodes"},
      {"?", "not known"}};
  if (topology.devices() < 2) return "";
  std::vector<std::vector<std::string>> rows(1, {""});
  std::set<std::string> used;
  for (size_t a = 0; a < topology.devices(); ++a) {
    rows[0].push_back(printable(topology.device_name(a), 40));
    rows.push_back({rows[0].back()});
    for (size_t b = 0; b < topology.devices(); ++b) {
      const Connection& connection = topology.connection(a, b);
      rows.back().push_back(connection_text(connection));
      used.insert(connection.link == Link::kNvLink ? "NV#" : rows.back().back());
    }
  }
  std::vector<std::string> words;
  for (const auto& [name, meaning] : legend) {
    if (used.count(name) > 0) words.push_back(str(name, ": ", meaning));
  }
  return table_text(rows) + "  " + join(words, "; ") + "\n";
}

std::string binding_text(const Topology& topology, const BindingPlan& plan) {
  std::vector<std::vector<std::string>> rows = {{"rank", "GPU", "NUMA", "cores", "CPUs", "NIC"}};
  for (const RankBinding& rank : plan.ranks) {
    rows.push_back({std::to_string(rank.rank), rank.gpu < 0 ? "-" : topology.gpus[static_cast<size_t>(rank.gpu)].name,
                    list_text(rank.numa_nodes), std::to_string(rank.cores),
                    rank.cpus.empty() ? "-" : cpu_list_text(rank.cpus),
                    rank.nic < 0 ? "-" : printable(topology.nics[static_cast<size_t>(rank.nic)].name, 40)});
  }
  std::string out = table_text(rows);
  for (const std::string& note : plan.notes) out += "! " + note + "\n";
  return out;
}

std::string nccl_text(const NcclAdvice& advice) {
  std::vector<std::vector<std::string>> rows;
  for (const NcclSetting& each : advice.settings) {
    rows.push_back({std::string(strength_name(each.strength)),
                    each.value.empty() ? each.name : each.name + "=" + printable(each.value, 1000),
                    printable(each.reason, 1000)});
  }
  std::string out = table_text(rows);
  for (const std::string& note : advice.notes) out += "! " + note + "\n";
  return out;
}

namespace {

OrderedJson number_or_null(int value) { return value < 0 ? OrderedJson() : OrderedJson(value); }

OrderedJson nic_json(const Nic& nic) {
  OrderedJson out = {
      {"name", nic.name}, {"rdma", nic.rdma}, {"pci", nic.pci}, {"numa_node", number_or_null(nic.numa_node)}};
  out["active"] = nic.active ? OrderedJson(*nic.active) : OrderedJson();
  out["link_layer"] = nic.link_layer;
  out["interfaces"] = nic.interfaces;
  out["label"] = nic.label;
  return out;
}

}  // namespace

OrderedJson topology_json(const Topology& topology) {
  OrderedJson out = {{"source", topology.source}};
  for (const char* key : {"sockets", "numa_nodes", "cores", "gpus", "nics", "links"}) out[key] = OrderedJson::array();
  for (const Package& each : topology.packages)
    out["sockets"].push_back({{"index", each.index}, {"model", each.model}});
  for (const NumaNode& each : topology.numa_nodes) {
    out["numa_nodes"].push_back({{"index", each.index},
                                 {"socket", number_or_null(each.package)},
                                 {"memory_bytes", each.memory_bytes},
                                 {"cpus", cpu_list_text(each.cpus)},
                                 {"cores_in_all", each.cores_in_all}});
  }
  for (const Core& each : topology.cores) {
    out["cores"].push_back({{"socket", number_or_null(each.package)},
                            {"numa_node", number_or_null(each.numa_node)},
                            {"cpus", cpu_list_text(each.cpus)}});
  }
  for (const Gpu& each : topology.gpus) {
    out["gpus"].push_back({{"name", each.name},
                           {"model", each.model},
                           {"pci", each.pci},
                           {"numa_node", number_or_null(each.numa_node)},
                           {"near_cpus", cpu_list_text(each.near)}});
  }
  for (const Nic& each : topology.nics) out["nics"].push_back(nic_json(each));
  for (size_t a = 0; a < topology.devices(); ++a) {
    OrderedJson row = OrderedJson::array();
    for (size_t b = 0; b < topology.devices(); ++b) row.push_back(connection_text(topology.connection(a, b)));
    out["links"].push_back(std::move(row));
  }
  out["unknown"] = topology.unknown;
  return out;
}

OrderedJson binding_json(const Topology& topology, const BindingPlan& plan) {
  OrderedJson ranks = OrderedJson::array();
  for (const RankBinding& each : plan.ranks) {
    OrderedJson rank = {{"rank", each.rank},
                        {"gpu", number_or_null(each.gpu)},
                        {"numa_nodes", each.numa_nodes},
                        {"cores", each.cores},
                        {"cpus", cpu_list_text(each.cpus)}};
    rank["nic"] = each.nic < 0 ? OrderedJson() : OrderedJson(topology.nics[static_cast<size_t>(each.nic)].name);
    ranks.push_back(std::move(rank));
  }
  return {{"ranks", ranks}, {"notes", plan.notes}};
}

OrderedJson nccl_json(const NcclAdvice& advice) {
  OrderedJson settings = OrderedJson::array();
  for (const NcclSetting& each : advice.settings) {
    settings.push_back({{"strength", strength_name(each.strength)},
                        {"name", each.name},
                        {"value", each.value.empty() ? OrderedJson() : OrderedJson(each.value)},
                        {"reason", each.reason}});
  }
  return {{"settings", settings}, {"notes", advice.notes}};
}

}  // namespace skytrain::topology
