#include "skytrain/launch/meeting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr double kRetrySeconds = 0.3, kConnectSeconds = 10, kReminderSeconds = 30;

double now() { return Clock::real().monotonic_seconds(); }

bool names_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

class Meeting {
 public:
  Meeting(const NodeOptions& options, const MeetingHooks& hooks)
      : options_(options), hooks_(hooks), deadline_(now() + options.join_timeout) {}

  Met run(bool may_head) {
    Met met;
    double next_reminder = now() + 1;
    while (!met.listener && !met.link) {
      std::string why;
      std::vector<SocketAddress> addresses;
      try {
        addresses = resolve(options_.join);
      } catch (const Error& error) {  // a cluster's names may come later
        why = error.problem();
      }
      if (may_head && options_.node_rank <= 0 && listen(addresses, met)) break;
      if (options_.node_rank != 0) {
        for (const SocketAddress& address : addresses) {
          if ((met.link = try_to_join(address, why)) != nullptr || stopped_) break;
        }
      }
      if (met.link || stopped_) break;
      const double left = deadline_ - now();
      if (left <= 0) throw nobody(why);
      if (now() >= next_reminder) {
        hooks_.say(str("waiting for the head at ", options_.join.text(), " (", why, ") for ", human_seconds(left),
                       " at most"));
        next_reminder = now() + kReminderSeconds;
      }
      if (hooks_.rest(std::min(kRetrySeconds, left))) break;
    }
    return met;
  }

 private:
  Error nobody(const std::string& why) const {
    return Error(ErrorKind::kEnvironment, options_.join.text(),
                 str("no head answered within ", human_seconds(options_.join_timeout), ": ", why),
                 "start the same command on that machine too, and see whether a firewall is between");
  }

  bool listen(const std::vector<SocketAddress>& addresses, Met& met) {
    std::optional<SocketAddress> target;
    for (const SocketAddress& address : addresses) {
      if (target || !is_own_address(address)) continue;
      target = address;
      // Debian gives a machine's own name the address 127.0.1.1, where nobody else would find it.
      if (address.is_loopback() && !names_this_machine(options_.join.host)) target = any_address(options_.join.port);
    }
    if (options_.node_rank == 0 && !options_.interface.empty()) {
      target = interface_address(options_.interface);
      target->set_port(options_.join.port);
    } else if (options_.node_rank == 0 && !target) {
      target = any_address(options_.join.port);  // behind a service's or a router's address
    }
    if (!target) return false;
    met.listener = listen_on(*target);
    met.address = target->text();
    if (met.listener) return true;
    if (options_.node_rank != 0 && errno == EADDRINUSE) return false;
    throw Error(ErrorKind::kEnvironment, target->text(), str("the head cannot listen: ", std::strerror(errno)),
                errno == EADDRINUSE ? "another job's head may be there: take another port" : "");
  }

  // false: time is up or we are to stop.
  bool wait_for(int fd, short events, double until) {
    while (now() < until) {
      pollfd poll_fd{fd, events, 0};
      if (::poll(&poll_fd, 1, 20) > 0) return true;
      if (hooks_.rest(0)) {
        stopped_ = true;
        return false;
      }
    }
    return false;
  }

  std::unique_ptr<HeadLink> try_to_join(const SocketAddress& address, std::string& why) {
    std::optional<SocketAddress> source;
    if (!options_.interface.empty()) source = interface_address(options_.interface, address.family());
    Fd socket = start_connect(address, source ? &*source : nullptr);
    const double until = std::min(now() + kConnectSeconds, deadline_);
    int error = socket ? 0 : errno;
    if (socket) error = wait_for(socket.get(), POLLOUT, until) ? connect_error(socket) : ETIMEDOUT;
    // The kernel joins two halves of one socket when the port is one that it gives out itself.
    if (error == 0 && local_address(socket).text() == peer_address(socket).text()) error = ECONNREFUSED;
    if (error != 0) {
      why = str(address.text(), ": ", std::strerror(error));
      return nullptr;
    }
    return shake_hands(std::move(socket), address, until, why);
  }

  std::unique_ptr<HeadLink> shake_hands(Fd socket, const SocketAddress& address, double until, std::string& why) {
    FrameStream stream(std::move(socket), kHandshakeFrameBytes);
    MemberHandshake handshake(options_.key);
    while (!handshake.done()) {
      if (!wait_for(stream.fd(), POLLIN, until) || !stream.read_some()) {
        why = str(address.text(), ": it ", stream.why().empty() ? "does not answer" : "closed the connection");
        return nullptr;
      }
      std::optional<std::string> frame;
      try {
        frame = stream.next();
      } catch (const Error&) {
        throw refused(address, Refusal{Refusal::Why::kGarbage});
      }
      if (!frame) continue;
      const std::string reply = handshake.answer(*frame);
      if (!reply.empty()) stream.push(reply);
      if (!stream.write_some()) {
        why = str(address.text(), ": ", stream.why());
        return nullptr;
      }
      if (handshake.refusal()) throw refused(address, *handshake.refusal());
    }
    return std::make_unique<HeadLink>(std::move(stream), handshake.seals(), true);
  }

  static Error refused(const SocketAddress& address, const Refusal& refusal) {
    switch (refusal.why) {
      case Refusal::Why::kKey:
        return Error(ErrorKind::kUsage, address.text(), "the head has another job key",
                     str("give all nodes the same ", kKeyVariable, " or --job-key-file"));
      case Refusal::Why::kVersion:
        return Error(
            ErrorKind::kEnvironment, address.text(),
            str("the head speaks version ", refusal.version, " of the nodes' protocol, this skytrain ", kNodeProtocol),
            "install the same skytrain on all nodes");
      case Refusal::Why::kGarbage:
        break;
    }
    return Error(ErrorKind::kEnvironment, address.text(), "what answers there is no skytrain run",
                 "another program has that port: take another one on all nodes");
  }

  const NodeOptions& options_;
  const MeetingHooks& hooks_;
  const double deadline_;
  bool stopped_ = false;
};

}  // namespace

Met meet(const NodeOptions& options, bool may_head, const MeetingHooks& hooks) {
  return Meeting(options, hooks).run(may_head);
}

}  // namespace skytrain::launch
