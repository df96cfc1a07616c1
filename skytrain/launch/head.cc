#include "skytrain/launch/head.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>

#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/socket.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr double kFarewellSeconds = 5, kDeafSeconds = 1;
constexpr size_t kMostTold = 20;                // lines about strangers
constexpr size_t kMostWaitingBytes = 4u << 20;  // to a node that does not read

}  // namespace

struct Head::Peer {
  explicit Peer(FrameStream s) : stream(std::move(s)) {}
  FrameStream stream;
  std::string address;
  std::unique_ptr<HeadHandshake> handshake;  // until it has proved that it has the key
  std::unique_ptr<Seals> seals;              // from then on
  double deadline = INFINITY;                // of the handshake, or of the farewell
  bool farewell = false;                     // nothing more is sent; closed when it closes
  bool gone = false;
  std::string why;
};

Head::Head(Options options, message::Join local)
    : options_(std::move(options)), coordinator_(options_.coordinator, Clock::real(), std::move(local)) {
  auto [ours, theirs] = stream_socket_pair();
  const std::string a = random_bytes(32), b = random_bytes(32);
  local_end_ = std::make_unique<FrameStream>(std::move(theirs), kNodeFrameBytes);
  local_seals_ = std::make_unique<Seals>(Seals{Seal(b), Seal(a)});
  auto peer = std::make_unique<Peer>(FrameStream(std::move(ours), kNodeFrameBytes));
  peer->seals = std::make_unique<Seals>(Seals{Seal(a), Seal(b)});
  peers_.emplace(Coordinator::kLocal, std::move(peer));
  thread_ = std::thread([this] { run(); });
}

Head::~Head() {
  stop_ = true;
  wake_.ring();
  thread_.join();
}

std::unique_ptr<HeadLink> Head::local_link() {
  return std::make_unique<HeadLink>(std::move(*local_end_), std::move(*local_seals_), false);
}

void Head::run() {
  try {
    while (true) {
      deliver();
      write_all();
      // Not the local one, which is closed by whoever closes us.
      const bool others = peers_.size() > peers_.count(Coordinator::kLocal);
      if (stop_ && (!coordinator_.ended() || !others)) break;
      wait();
      drop_late_strangers();
      if (now() >= coordinator_.next_tick()) coordinator_.tick();
    }
  } catch (const std::exception& error) {
    log_error(str("the head of the job failed: ", error.what()));
  }
  peers_.clear();
  options_.listener.reset();
}

void Head::wait() {
  std::vector<pollfd> fds = {{wake_.fd(), POLLIN, 0}};
  const bool listens = options_.listener && now() >= deaf_until_;
  if (listens) fds.push_back({options_.listener.get(), POLLIN, 0});
  const size_t first = fds.size();
  double until = coordinator_.ended() ? now() + kDeafSeconds : coordinator_.next_tick();
  for (const auto& [connection, peer] : peers_) {
    fds.push_back({peer->stream.fd(), static_cast<short>(peer->stream.wants_write() ? POLLIN | POLLOUT : POLLIN), 0});
    until = std::min(until, peer->deadline);
  }
  const double milliseconds = std::clamp(std::ceil((until - now()) * 1000), 0.0, 1000.0);
  if (::poll(fds.data(), fds.size(), static_cast<int>(milliseconds)) <= 0) return;
  if (fds[0].revents != 0) wake_.quiet();
  size_t i = first;
  for (auto& [connection, peer] : peers_) {
    if ((fds[i++].revents & ~POLLOUT) != 0) read(connection, *peer);
  }
  if (listens && fds[1].revents != 0) accept_all();
}

void Head::accept_all() {
  while (true) {
    Fd socket = accept_from(options_.listener);
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) deaf_until_ = now() + kDeafSeconds;
      return;
    }
    std::vector<int> strangers;
    for (const auto& [connection, peer] : peers_) {
      if (peer->handshake) strangers.push_back(connection);
    }
    if (strangers.size() >= options_.most_strangers) peers_.erase(strangers.front());
    const std::string address = peer_address(socket).host();
    auto peer = std::make_unique<Peer>(FrameStream(std::move(socket), kHandshakeFrameBytes));
    peer->address = address;
    peer->handshake = std::make_unique<HeadHandshake>(options_.key);
    peer->deadline = now() + options_.handshake_seconds;
    peer->stream.push(peer->handshake->first_frame());
    peers_.emplace(next_connection_++, std::move(peer));
  }
}

void Head::read(int connection, Peer& peer) {
  const bool open = peer.stream.read_some();
  try {
    while (!peer.gone) {
      const auto frame = peer.stream.next();
      if (!frame) break;
      if (peer.farewell) continue;
      if (peer.handshake) {
        greet(connection, peer, *frame);
      } else {
        coordinator_.received(connection, decode_node_message(peer.seals->in.open(*frame)));
      }
    }
  } catch (const Error& error) {
    peer.gone = true;
    peer.why = error.problem();
    if (peer.handshake) tell_once(peer.address, "it is no skytrain run");
  }
  if (!open && !peer.gone) {
    peer.gone = true;
    peer.why = peer.stream.why();
  }
}

void Head::greet(int connection, Peer& peer, const std::string& frame) {
  const std::string reply = peer.handshake->answer(frame);
  if (!reply.empty()) peer.stream.push(reply);
  if (const auto& refusal = peer.handshake->refusal()) {
    const bool version = refusal->why == Refusal::Why::kVersion;
    tell_once(peer.address, refusal->why == Refusal::Why::kKey ? "its job key is another one"
                            : version
                                ? str("it speaks version ", refusal->version, " of the nodes' protocol, this head ",
                                      kNodeProtocol, ": install the same skytrain on all nodes")
                                : "it is no skytrain run");
    peer.farewell = true;
    peer.deadline = std::min(peer.deadline, now() + kFarewellSeconds);
    return;
  }
  peer.seals = std::make_unique<Seals>(peer.handshake->seals());
  peer.handshake.reset();
  peer.deadline = INFINITY;
  peer.stream.set_longest_frame(kNodeFrameBytes);
  coordinator_.connected(connection, peer.address, local_address(peer.stream.socket()).host());
}

void Head::drop_late_strangers() {
  for (auto& [connection, peer] : peers_) {
    if (now() < peer->deadline) continue;
    peer->gone = true;
    if (peer->handshake && !peer->farewell) tell_once(peer->address, "it did not say who it is");
  }
}

// At most once for each host and reason: a port scanner fills no terminal.
void Head::tell_once(const std::string& who, const std::string& what) {
  if (told_.size() >= kMostTold || !told_.insert(who + what).second) return;
  coordinator_.say(str("refused a connection from ", who, ": ", what));
}

void Head::deliver() {
  for (auto at = peers_.begin(); at != peers_.end();) {
    const bool gone = at->second->gone;
    if (gone && at->second->seals && !at->second->farewell) coordinator_.gone(at->first, at->second->why);
    at = gone ? peers_.erase(at) : std::next(at);
  }
  const std::vector<Coordinator::Out> out = coordinator_.take();
  if (coordinator_.ended()) {
    options_.listener.reset();  // before anyone hears of it: the next job may come at once
    for (const auto& [connection, peer] : peers_) peer->gone = peer->gone || peer->handshake;
  }
  for (const Coordinator::Out& piece : out) {
    const auto at = peers_.find(piece.connection);
    if (at == peers_.end() || at->second->farewell) continue;
    Peer& peer = *at->second;
    peer.stream.push(peer.seals->out.close(encode(piece.message)));
    if (peer.stream.waiting_bytes() > kMostWaitingBytes) {
      peer.gone = true;
      peer.why = "it does not read what it is told";
    }
    if (piece.then == Coordinator::Out::Then::kGoOn) continue;
    peer.farewell = true;
    peer.deadline = piece.then == Coordinator::Out::Then::kDrop ? now() : now() + kFarewellSeconds;
  }
}

void Head::write_all() {
  for (auto& [connection, peer] : peers_) {
    if (!peer->stream.write_some()) {
      peer->gone = true;
      peer->why = peer->stream.why();
    } else if (peer->farewell && !peer->stream.wants_write()) {
      ::shutdown(peer->stream.fd(), SHUT_WR);  // close() would take back what it has not read if it still sends
    }
  }
}

}  // namespace skytrain::launch
