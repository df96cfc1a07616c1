#include "skytrain/topology/default_interface.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/text.h"

namespace skytrain::topology {
namespace {

constexpr uint32_t kUp = 0x1, kReject = 0x200;  // RTF_UP, RTF_REJECT of linux/route.h

using Address = std::vector<uint8_t>;  // 4 or 16 bytes, as on the wire

struct Route {
  std::string interface;
  Address destination;
  int prefix = 0;  // bits
  uint32_t metric = 0;
};

std::optional<uint32_t> number(const std::string& text, int base) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::vector<std::vector<std::string>> lines_of(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

// Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT; addresses as the words of the machine's
// memory.
std::vector<Route> ipv4_routes(const std::string& text) {
  std::vector<Route> routes;
  for (const auto& words : lines_of(text)) {
    if (words.size() < 8 || words[1].size() != 8 || words[7].size() != 8) continue;
    const auto destination = number(words[1], 16), flags = number(words[3], 16), metric = number(words[6], 10),
               mask = number(words[7], 16);
    if (!destination || !flags || !metric || !mask) continue;
    if ((*flags & kUp) == 0 || (*flags & kReject) != 0) continue;
    Route route{words[0], Address(4), __builtin_popcount(*mask), *metric};
    std::memcpy(route.destination.data(), &*destination, 4);
    routes.push_back(std::move(route));
  }
  return routes;
}

// Destination, prefix, source, its prefix, next hop, metric, references, use, flags, interface; all in hex.
std::vector<Route> ipv6_routes(const std::string& text) {
  std::vector<Route> routes;
  for (const auto& words : lines_of(text)) {
    if (words.size() < 10 || words[0].size() != 32) continue;
    const auto prefix = number(words[1], 16), metric = number(words[5], 16), flags = number(words[8], 16);
    if (!prefix || *prefix > 128 || !metric || !flags) continue;
    if ((*flags & kUp) == 0 || (*flags & kReject) != 0) continue;
    Route route{words[9], Address(16), static_cast<int>(*prefix), *metric};
    bool whole = true;
    for (size_t i = 0; i < 16; ++i) {
      const auto byte = number(words[0].substr(2 * i, 2), 16);
      whole = whole && byte.has_value();
      route.destination[i] = static_cast<uint8_t>(byte.value_or(0));
    }
    if (whole) routes.push_back(std::move(route));
  }
  return routes;
}

bool covers(const Route& route, const Address& address) {
  for (int bit = 0; bit < route.prefix; ++bit) {
    const int shift = 7 - bit % 8;
    if (((route.destination[bit / 8] ^ address[bit / 8]) >> shift & 1) != 0) return false;
  }
  return true;
}

const Route* best(const std::vector<Route>& routes, const Address& address) {
  const Route* chosen = nullptr;
  for (const Route& route : routes) {
    if (route.destination.size() != address.size() || !covers(route, address)) continue;
    if (chosen == nullptr || route.prefix > chosen->prefix ||
        (route.prefix == chosen->prefix && route.metric < chosen->metric)) {
      chosen = &route;
    }
  }
  return chosen;
}

Address parse_address(std::string_view text) {
  const std::string copy(text);
  Address v4(4), v6(16);
  if (::inet_pton(AF_INET, copy.c_str(), v4.data()) == 1) return v4;
  if (::inet_pton(AF_INET6, copy.c_str(), v6.data()) == 1) {
    static constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // ::ffff:10.0.0.1
    if (std::equal(kMapped.begin(), kMapped.end(), v6.begin())) return Address(v6.begin() + 12, v6.end());
    return v6;
  }
  throw Error(ErrorKind::kUsage, "", str("\"", printable(text, 60), "\" is no IPv4 or IPv6 address"),
              "give the address in digits, such as 10.0.0.1");
}

bool is_loopback(const Address& address) {
  if (address.size() == 4) return address[0] == 127;
  return std::all_of(address.begin(), address.end() - 1, [](uint8_t b) { return b == 0; }) && address.back() == 1;
}

}  // namespace

bool is_virtual_interface(std::string_view name) {
  if (name == "lo") return true;
  for (const std::string_view prefix :
       {"docker", "veth", "virbr", "br-", "cni", "flannel", "cali", "lxc", "lxdbr", "vmnet", "podman", "kube-"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

RouteTables this_machines_routes() { return {read_or_empty("/proc/net/route"), read_or_empty("/proc/net/ipv6_route")}; }

std::optional<ChosenInterface> default_interface(const RouteTables& routes, std::string_view address,
                                                 std::string_view wanted) {
  if (!wanted.empty()) {
    if (wanted.size() >= IFNAMSIZ || wanted.find_first_of(" \t\n/,") != wanted.npos) {
      throw Error(ErrorKind::kUsage, "", str("\"", printable(wanted, 60), "\" is no name of a network interface"),
                  "ip link lists them");
    }
    return ChosenInterface{std::string(wanted), "it was asked for"};
  }
  std::vector<Route> all = ipv4_routes(routes.ipv4);
  const std::vector<Route> v6 = ipv6_routes(routes.ipv6);
  all.insert(all.end(), v6.begin(), v6.end());
  if (!address.empty()) {
    const Address target = parse_address(address);
    if (is_loopback(target)) return ChosenInterface{"lo", str(address, " is this machine's loopback")};
    const Route* route = best(all, target);
    if (route == nullptr) return {};
    return ChosenInterface{route->interface, str(route->prefix == 0 ? "the default route to " : "the route to ",
                                                 address, " goes through it")};
  }
  std::erase_if(all, [](const Route& r) { return r.prefix != 0 || is_virtual_interface(r.interface); });
  for (const size_t bytes : {4, 16}) {
    if (const Route* route = best(all, Address(bytes))) {
      return ChosenInterface{route->interface,
                             str("the default route", bytes == 16 ? " of IPv6" : "", " goes through it")};
    }
  }
  return {};
}

}  // namespace skytrain::topology
