#include "skytrain/base/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

constexpr int kBacklog = 1024;

int port_of(const std::string& text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos) return 0;
  const int port = std::stoi(text);
  return port <= 65535 ? port : 0;
}

sockaddr_in& v4(SocketAddress& address) { return reinterpret_cast<sockaddr_in&>(address.storage); }
sockaddr_in6& v6(SocketAddress& address) { return reinterpret_cast<sockaddr_in6&>(address.storage); }
const sockaddr_in& v4(const SocketAddress& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
const sockaddr_in6& v6(const SocketAddress& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }

bool is_mapped(const SocketAddress& address) {
  return address.family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6(address).sin6_addr);
}

SocketAddress from(const sockaddr* generic, socklen_t size) {
  SocketAddress address;
  std::memcpy(&address.storage, generic, size);
  address.size = size;
  return address;
}

template <class Function>
SocketAddress ask(Function function, const Fd& socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (function(socket.get(), address.get(), &address.size) != 0) address.size = 0;
  return address;
}

void set_option(const Fd& socket, int level, int name) {
  const int on = 1;
  ::setsockopt(socket.get(), level, name, &on, sizeof on);
}

Fd open_socket(int family) { return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

std::string HostPort::text() const {
  return host.find(':') == std::string::npos ? str(host, ":", port) : str("[", host, "]:", port);
}

HostPort parse_host_port(const std::string& text, int default_port, const std::string& where) {
  const auto refuse = [&](const std::string& what) -> Error {
    return Error(
        ErrorKind::kUsage, where, str("\"", printable(text, 80), "\" ", what),
        str("write HOST:PORT, as node1:", default_port, ", 10.0.0.1:", default_port, " or [fd00::1]:", default_port));
  };
  HostPort result;
  std::string rest;
  if (!text.empty() && text[0] == '[') {
    const size_t end = text.find(']');
    if (end == std::string::npos) throw refuse("lacks its ]");
    result.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    if (std::count(text.begin(), text.end(), ':') > 1) throw refuse("is an IPv6 address without [ and ]");
    const size_t colon = text.find(':');
    result.host = text.substr(0, colon);
    rest = colon == std::string::npos ? "" : text.substr(colon);
  }
  const bool odd = std::any_of(result.host.begin(), result.host.end(),
                               [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '@'; });
  if (result.host.empty() || odd) throw refuse("has no host");
  result.port = default_port;
  if (!rest.empty()) result.port = rest[0] == ':' ? port_of(rest.substr(1)) : 0;
  if (result.port == 0) throw refuse("has no port from 1 to 65535");
  return result;
}

int SocketAddress::port() const { return ntohs(family() == AF_INET6 ? v6(*this).sin6_port : v4(*this).sin_port); }

void SocketAddress::set_port(int port) {
  const auto big = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET6) {
    v6(*this).sin6_port = big;
  } else {
    v4(*this).sin_port = big;
  }
}

std::string SocketAddress::host() const {
  if (size == 0) return "?";
  char name[NI_MAXHOST] = "?";
  ::getnameinfo(get(), size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
  std::string text = name;
  return is_mapped(*this) && text.rfind("::ffff:", 0) == 0 ? text.substr(7) : text;
}

std::string SocketAddress::text() const { return HostPort{host(), port()}.text(); }

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(v4(*this).sin_addr.s_addr) >> 24 == 127;
  if (is_mapped(*this)) return v6(*this).sin6_addr.s6_addr[12] == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

std::vector<SocketAddress> resolve(const HostPort& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failure = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
  if (failure != 0) {
    throw Error(
        ErrorKind::kEnvironment, where.host,
        str("this name has no address: ", failure == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failure)),
        "check the name and this machine's resolver, or give an address");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (info->ai_family == AF_INET || info->ai_family == AF_INET6) {
      addresses.push_back(from(info->ai_addr, info->ai_addrlen));
    }
  }
  return addresses;
}

SocketAddress any_address(int port) {
  SocketAddress address;
  if (const Fd probe = open_socket(AF_INET6)) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    address = from(reinterpret_cast<const sockaddr*>(&any), sizeof any);
    // Not where IPv6 is switched off by the sysctl.
    if (::bind(probe.get(), address.get(), address.size) != 0) address.size = 0;
  }
  if (address.size == 0) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    address = from(reinterpret_cast<const sockaddr*>(&any), sizeof any);
  }
  address.set_port(port);
  return address;
}

bool is_own_address(const SocketAddress& address) {
  const Fd probe = open_socket(address.family());
  SocketAddress any_port = address;
  any_port.set_port(0);
  return probe && ::bind(probe.get(), any_port.get(), any_port.size) == 0;
}

SocketAddress interface_address(const std::string& name, std::optional<int> family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw errno_error(name, "cannot read network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<std::string> names;
  std::optional<SocketAddress> found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (std::find(names.begin(), names.end(), i->ifa_name) == names.end()) names.emplace_back(i->ifa_name);
    if (i->ifa_addr == nullptr || name != i->ifa_name) continue;
    const int its = i->ifa_addr->sa_family;
    if ((its != AF_INET && its != AF_INET6) || (family && its != *family)) continue;
    if (found && (found->family() == AF_INET || its == AF_INET6)) continue;
    found = from(i->ifa_addr, its == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  if (found) return *found;
  const bool there = std::find(names.begin(), names.end(), name) != names.end();
  throw Error(
      ErrorKind::kEnvironment, name,
      there ? str("this network interface has no ", family ? (*family == AF_INET ? "IPv4 " : "IPv6 ") : "", "address")
            : str("there is no such network interface", did_you_mean(name, names)),
      "this machine has " + join(names, ", "));
}

SocketAddress local_address(const Fd& socket) { return ask(::getsockname, socket); }
SocketAddress peer_address(const Fd& socket) { return ask(::getpeername, socket); }

Fd listen_on(const SocketAddress& address) {
  Fd socket = open_socket(address.family());
  if (!socket) return Fd();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR);  // connections of a job that has ended do not hold the port
  if (address.family() == AF_INET6) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.size) == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return Fd();
}

Fd accept_from(const Fd& listener) {
  Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Fd start_connect(const SocketAddress& address, const SocketAddress* source) {
  Fd socket = open_socket(address.family());
  if (!socket) return Fd();
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  if (source != nullptr) set_option(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
  const bool bound = source == nullptr || ::bind(socket.get(), source->get(), source->size) == 0;
  if (bound && (::connect(socket.get(), address.get(), address.size) == 0 || errno == EINPROGRESS)) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return Fd();
}

int connect_error(const Fd& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace skytrain
