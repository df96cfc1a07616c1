// skytrain/topology/default_interface.h
//
// Which network interface leads to the other nodes: the one that the kernel's main routing table takes to a given
// address, else the default route's. Read from the texts of /proc/net/route and /proc/net/ipv6_route (formats: the
// kernel's net/ipv4/fib_trie.c and net/ipv6/route.c, proc(5)); rules of policy routing are not seen. Any thread may
// call.

#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace skytrain::topology {

struct RouteTables {
  std::string ipv4;  // of /proc/net/route; "" when it can't be read
  std::string ipv6;  // of /proc/net/ipv6_route
};

struct ChosenInterface {
  std::string name;    // "eth0"
  std::string reason;  // one clause: "the default route goes through it"
};

RouteTables this_machines_routes();

// wanted: taken as it is when not "" (an option of the user's, who knows better). address: an IPv4 or IPv6 address in
// digits; "" asks for the default route, IPv4's before IPv6's. Of routes that fit the longest prefix wins, then the
// lowest metric, as in the kernel. The default route's interface is never the loopback's or a bridge of containers
// (docker0); to an address, whatever the table says, and "lo" to this machine's own loopback. nullopt: no route. Throws
// Error(kUsage) for an address that is none, or a wanted name that no interface can have.
std::optional<ChosenInterface> default_interface(const RouteTables& routes, std::string_view address = "",
                                                 std::string_view wanted = "");

// lo, docker*, veth*, virbr*, br-*, cni*, …: made for containers and virtual machines of this host.
bool is_virtual_interface(std::string_view name);

}  // namespace skytrain::topology
