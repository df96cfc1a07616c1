#include "skytrain/topology/topology.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace skytrain::topology {
namespace {

constexpr std::array<std::pair<Link, std::string_view>, 7> kNames = {{{Link::kSelf, "X"},
                                                                      {Link::kPix, "PIX"},
                                                                      {Link::kPxb, "PXB"},
                                                                      {Link::kPhb, "PHB"},
                                                                      {Link::kNode, "NODE"},
                                                                      {Link::kSys, "SYS"},
                                                                      {Link::kSys, "SOC"}}};

}  // namespace

std::string Topology::device_name(size_t device) const {
  return device < gpus.size() ? gpus[device].name : nics[device - gpus.size()].name;
}

void Topology::resize_links() {
  if (links.size() == devices()) return;
  links.assign(devices(), std::vector<Connection>(devices()));
  for (size_t i = 0; i < devices(); ++i) links[i][i].link = Link::kSelf;
}

void Topology::connect(size_t a, size_t b, const Connection& connection) {
  links[a][b] = connection;
  links[b][a] = connection;
}

std::string connection_text(const Connection& connection) {
  if (connection.link == Link::kNvLink) return "NV" + std::to_string(connection.nvlinks);
  for (const auto& [link, name] : kNames) {
    if (link == connection.link) return std::string(name);
  }
  return "?";
}

std::optional<Connection> parse_connection(std::string_view text) {
  for (const auto& [link, name] : kNames) {
    if (text == name) return Connection{link};
  }
  if (text == "?" || text == "N/A") return Connection{};
  if (text.size() < 3 || text.substr(0, 2) != "NV") return {};
  int count = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > 1000) return {};
  return Connection{Link::kNvLink, count};
}

void restrict_to(Topology& topology, const CpuList& usable) {
  for (Core& core : topology.cores) core.cpus = intersection(core.cpus, usable);
  std::erase_if(topology.cores, [](const Core& core) { return core.cpus.empty(); });
  for (NumaNode& node : topology.numa_nodes) node.cpus = intersection(node.cpus, usable);
}

Link pci_link(const std::vector<std::string>& bridges_a, int node_a, const std::vector<std::string>& bridges_b,
              int node_b) {
  const bool known = !bridges_a.empty() && !bridges_b.empty();
  if (known && bridges_a.front() == bridges_b.front()) {
    const auto [end_a, end_b] = std::mismatch(bridges_a.begin(), bridges_a.end(), bridges_b.begin(), bridges_b.end());
    if (end_a - bridges_a.begin() < 2) return Link::kPhb;  // they share the host bridge alone
    // Below the last bridge that they share, each may have the port of that switch.
    return bridges_a.end() - end_a <= 1 && bridges_b.end() - end_b <= 1 ? Link::kPix : Link::kPxb;
  }
  if (node_a < 0 || node_b < 0) return Link::kUnknown;
  if (node_a != node_b) return Link::kSys;
  return known ? Link::kNode : Link::kUnknown;
}

void connect_by_pci(Topology& topology) {
  struct Place {
    const std::vector<std::string>* bridges;
    int node;
  };
  std::vector<Place> places;
  for (const Gpu& gpu : topology.gpus) places.push_back({&gpu.bridges, gpu.numa_node});
  for (const Nic& nic : topology.nics) places.push_back({&nic.bridges, nic.numa_node});
  topology.resize_links();
  for (size_t a = 0; a < places.size(); ++a) {
    for (size_t b = a + 1; b < places.size(); ++b) {
      if (topology.connection(a, b).link != Link::kUnknown) continue;
      Connection connection = topology.connection(a, b);
      connection.link = pci_link(*places[a].bridges, places[a].node, *places[b].bridges, places[b].node);
      topology.connect(a, b, connection);
    }
  }
}

std::string pci_address(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != text.npos && colon > 4 && text.substr(0, colon - 4).find_first_not_of('0') == text.npos) {
    text.remove_prefix(colon - 4);
  }
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace skytrain::topology
