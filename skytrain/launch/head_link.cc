#include "skytrain/launch/head_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr double kBeatSeconds = 1, kLastWordsSeconds = 1;

double now() { return Clock::real().monotonic_seconds(); }

}  // namespace

WakeUp::WakeUp() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw errno_error("eventfd", "cannot make one", errno);
}

void WakeUp::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(fd_.get(), &one, sizeof one);
}

void WakeUp::quiet() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = ::read(fd_.get(), &count, sizeof count);
}

HeadLink::HeadLink(FrameStream stream, Seals seals, bool watches)
    : stream_(std::move(stream)), seals_(std::move(seals)), watches_(watches), last_heard_(now()) {
  stream_.set_longest_frame(kNodeFrameBytes);
  thread_ = std::thread([this] { run(); });
}

HeadLink::~HeadLink() {
  ending_ = true;
  work_.ring();
  thread_.join();
}

std::optional<NodeMessage> HeadLink::take() {
  const std::lock_guard lock(mutex_);
  if (received_.empty()) {
    if (lost_.empty()) news_.quiet();
    return std::nullopt;
  }
  NodeMessage message = std::move(received_.front());
  received_.pop_front();
  return message;
}

void HeadLink::send(const NodeMessage& message) {
  {
    const std::lock_guard lock(mutex_);
    to_send_.push_back(encode(message));
  }
  work_.ring();
}

std::string HeadLink::lost() {
  const std::lock_guard lock(mutex_);
  return received_.empty() ? lost_ : "";
}

void HeadLink::lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  lost_ = why;
  news_.ring();
}

void HeadLink::run() {
  double next_beat = now(), end = INFINITY, last_turn = now();
  try {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        for (; !to_send_.empty(); to_send_.pop_front()) stream_.push(seals_.out.close(to_send_.front()));
      }
      if (!stream_.write_some()) return lose(stream_.why());
      if (ending_ && std::isinf(end)) end = now() + kLastWordsSeconds;
      if (ending_ && (!stream_.wants_write() || now() >= end)) return;

      pollfd fds[] = {{stream_.fd(), static_cast<short>(stream_.wants_write() ? POLLIN | POLLOUT : POLLIN), 0},
                      {work_.fd(), POLLIN, 0}};
      const double wait = std::clamp(std::min(next_beat, end) - now(), 0.0, kBeatSeconds);
      ::poll(fds, 2, static_cast<int>(std::ceil(wait * 1000)));
      if (fds[1].revents != 0) work_.quiet();
      if (fds[0].revents != 0) receive();
      if (!stream_.why().empty()) return lose(stream_.why());
      // A pause of this process is not the head's silence.
      if (now() - last_turn > node_timeout_ / 2) last_heard_ = now();
      last_turn = now();
      if (watches_ && node_timeout_ > 0 && now() - last_heard_ > node_timeout_) {
        return lose(str("it has said nothing for ", human_seconds(node_timeout_)));
      }
      if (now() >= next_beat && !ending_) {
        stream_.push(seals_.out.close(encode(message::Alive{})));
        next_beat = now() + kBeatSeconds;
      }
    }
  } catch (const Error& error) {
    lose(error.problem());
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

void HeadLink::receive() {
  stream_.read_some();
  while (const auto frame = stream_.next()) {
    NodeMessage message = decode_node_message(seals_.in.open(*frame));
    last_heard_ = now();
    if (std::holds_alternative<message::Alive>(message)) continue;
    const std::lock_guard lock(mutex_);
    if (const auto* welcome = std::get_if<message::Welcome>(&message)) node_timeout_ = welcome->node_timeout;
    received_.push_back(std::move(message));
    news_.ring();
  }
}

}  // namespace skytrain::launch
