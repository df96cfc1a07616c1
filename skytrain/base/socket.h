// skytrain/base/socket.h
//
// TCP over IPv4 and IPv6: addresses as people write them, listening and connecting without waiting. Descriptors are
// close-on-exec and non-blocking. Functions are thread-safe; Linux only.

#pragma once
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/process.h"

namespace skytrain {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;
  std::string text() const;  // "host:29400", "[::1]:29400"
};

// "host:29400", "10.0.0.1:29400", "[::1]:29400", and without a port with default_port. Throws Error(kUsage, where) for
// anything else, also for an IPv6 address without brackets.
HostPort parse_host_port(const std::string& text, int default_port, const std::string& where);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  int port() const;
  void set_port(int port);
  std::string host() const;  // "10.0.0.1", "::1", "fe80::1%eth0"; an IPv4 address mapped into IPv6 as IPv4
  std::string text() const;  // with its port
  bool is_loopback() const;
};

// All addresses of a name, by the system's resolver, which may take seconds. Throws Error(kEnvironment, "host").
std::vector<SocketAddress> resolve(const HostPort& where);
// Of all interfaces; IPv6 and IPv4 where the system has IPv6.
SocketAddress any_address(int port);
// Whether a socket of this machine could be bound to it, any port.
bool is_own_address(const SocketAddress& address);
// The first address of a network interface, IPv4 before IPv6 unless `family` (AF_INET, AF_INET6) asks for one. Throws
// Error(kEnvironment, name), naming those that there are.
SocketAddress interface_address(const std::string& name, std::optional<int> family = std::nullopt);

SocketAddress local_address(const Fd& socket);
SocketAddress peer_address(const Fd& socket);

// An empty Fd and errno when it can't be bound.
Fd listen_on(const SocketAddress& address);
// An empty Fd and errno when nobody is there to accept.
Fd accept_from(const Fd& listener);
// A socket that is being connected: poll for POLLOUT, then connect_error(). An empty Fd and errno when that is clear at
// once. source: the address that it comes from, any port.
Fd start_connect(const SocketAddress& address, const SocketAddress* source = nullptr);
int connect_error(const Fd& socket);  // 0, or an errno

}  // namespace skytrain
