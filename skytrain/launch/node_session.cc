#include "skytrain/launch/node_session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/json.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/rank_environment.h"
#include "skytrain/launch/stop_request.h"

namespace skytrain::launch {
namespace {

constexpr double kAbortSeconds = 2;  // for the head to hear of it

double now() { return Clock::real().monotonic_seconds(); }

std::string digest_of(const std::vector<std::string>& command) {
  return sha256_hex(Json(command).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void drain(int fd) {
  char bytes[64];
  while (::read(fd, bytes, sizeof bytes) > 0) {
  }
}

}  // namespace

NodeSession::NodeSession(const JobOptions& options, OutputQueue& queue)
    : options_(options), node_(*options.nodes), queue_(queue) {
  Met met = meet(node_, true, {[&](const std::string& text) { queue_.say(text); }, [&](double s) { return rest(s); }});
  is_head_ = static_cast<bool>(met.listener);
  address_ = met.address;
  listener_ = std::move(met.listener);
  link_ = std::move(met.link);
}

NodeSession::~NodeSession() {
  link_.reset();  // first: it sends what is left to say
  head_.reset();
}

void NodeSession::join(const std::string& resume) {
  message::Join join;
  join.host = host_name();
  join.command = digest_of(options_.command);
  join.nodes = node_.nodes;
  join.ranks = options_.ranks;
  join.asked = node_.node_rank >= 0;
  join.node_rank = node_.node_rank;
  join.resume = resume;
  if (last_start_) {
    join.restarts = last_start_->restarts + 1;
    if (!join.asked) join.node_rank = last_start_->node_rank;
  }
  if (!is_head_) return link_->send(join);
  join.node_rank = 0;
  Coordinator::Options coordinator;
  coordinator.nodes = node_.nodes;
  coordinator.max_restarts = options_.max_restarts;
  coordinator.join_timeout = node_.join_timeout;
  coordinator.node_timeout = node_.node_timeout;
  coordinator.address = address_;
  coordinator.free_port = free_port;
  coordinator.run_id = new_run_id();
  head_ = std::make_unique<Head>(Head::Options{coordinator, node_.key, std::move(listener_)}, join);
  link_ = head_->local_link();
}

void NodeSession::wait(double seconds) {
  std::vector<pollfd> fds = {{StopSignal::fd(), POLLIN, 0}};
  if (link_) fds.push_back({link_->fd(), POLLIN, 0});
  if (queue_.fd() >= 0) fds.push_back({queue_.fd(), POLLOUT, 0});
  ::poll(fds.data(), fds.size(), static_cast<int>(std::ceil(seconds * 1000)));
  if (fds[0].revents != 0) drain(StopSignal::fd());
  queue_.write_some();
}

bool NodeSession::rest(double seconds) {
  if (!stop_request().stop) wait(seconds);
  return stop_request().stop;
}

void NodeSession::follow_signals(bool& noticed) {
  const StopRequest request = stop_request();
  if (request.now && !told_abort_) {
    told_abort_ = true;
    abort_deadline_ = now() + kAbortSeconds;
    link_->send(message::Abort{});
  }
  if (request.stop && !noticed && !told_notice_) {
    told_notice_ = noticed = true;
    const double left = request.signo == SIGINT ? -1 : options_.grace_seconds;
    link_->send(message::NoticeGiven{name_of_signal(request.signo), left});
  }
}

std::optional<message::Start> NodeSession::await_start(JobEnd& end) {
  bool noticed = false;
  while (true) {
    if (lost_ && !come_back()) {
      note_lost_head(end);
      return std::nullopt;
    }
    follow_signals(noticed);
    if (told_abort_ && now() >= abort_deadline_) {
      end.kind = JobEnd::Kind::kAborted;
      return std::nullopt;
    }
    while (auto message = link_->take()) {
      if (const auto* note = std::get_if<message::Note>(&*message)) queue_.say(note->text);
      if (const auto* refused = std::get_if<message::Refused>(&*message)) {
        throw Error(ErrorKind::kUsage, node_.join.text(), "the head refused this node: " + refused->what,
                    refused->hint);
      }
      if (const auto* start = std::get_if<message::Start>(&*message)) {
        last_start_ = *start;
        return *start;
      }
      if (const auto* over = std::get_if<message::End>(&*message)) {
        const int kind = std::clamp(over->kind, 0, static_cast<int>(JobEnd::Kind::kAborted));
        end.kind = static_cast<JobEnd::Kind>(kind);
        end.restarts = over->restarts;
        end.failure.reset();
        if (over->has_failure) end.failure = over->failure;
        if (!end.failure && end.kind == JobEnd::Kind::kFailed) end.failure.emplace();
        return std::nullopt;
      }
    }
    if (const std::string why = link_->lost(); !why.empty()) {
      lost_ = why;
      continue;
    }
    wait(told_abort_ ? 0.1 : 60);
  }
}

// Where restarts are left, the head may be reached again, or another one may have taken its place.
bool NodeSession::come_back() {
  const bool may = last_start_ && last_start_->restarts < last_start_->max_restarts && !is_head_ && !told_notice_ &&
                   !stop_request().stop;
  if (!may) return false;
  queue_.say(str("the head is lost (", *lost_, "): trying to join again for ", human_seconds(node_.join_timeout)));
  link_.reset();
  try {
    Met met =
        meet(node_, false, {[&](const std::string& text) { queue_.say(text); }, [&](double s) { return rest(s); }});
    link_ = std::move(met.link);
  } catch (const Error& error) {
    lost_ = str(*lost_, "; ", error.problem());
  }
  if (!link_) return false;
  lost_.reset();
  join("");
  return true;
}

void NodeSession::note_lost_head(JobEnd& end) {
  if (stop_request().stop) {
    end.kind = stop_request().now ? JobEnd::Kind::kAborted : JobEnd::Kind::kInterrupted;
    return;
  }
  end.kind = JobEnd::Kind::kFailed;
  end.restarts = last_start_ ? last_start_->restarts : 0;
  Failure failure;
  failure.rank = -1;
  failure.node = 0;
  failure.host = str("the head, ", node_.join.text());
  failure.cause = "lost: " + *lost_;
  failure.cause_code = exit_code(ErrorKind::kLostWorkers);
  end.failure = failure;
}

bool NodeSession::await_all_ended(const message::Ended& ended, bool& noticed) {
  if (lost_) return false;
  link_->send(ended);
  while (true) {
    follow_signals(noticed);
    while (auto message = link_->take()) {
      if (const auto* note = std::get_if<message::Note>(&*message)) queue_.say(note->text);
      if (const auto* notice = std::get_if<message::NoticeGiven>(&*message); notice != nullptr && !noticed) {
        noticed = true;
        queue_.say(str(notice->reason, " on another node"));
      }
      const auto* all = std::get_if<message::AllEnded>(&*message);
      if (all != nullptr && all->attempt == ended.attempt) return all->orderly;
    }
    if (const std::string why = link_->lost(); !why.empty()) {
      lost_ = why;
      return false;
    }
    if (told_abort_ && now() >= abort_deadline_) return false;
    wait(told_abort_ ? 0.1 : 60);
  }
}

void NodeSession::settled(const std::string& resume) {
  if (!lost_) link_->send(message::Settled{last_start_->attempt, resume});
}

}  // namespace skytrain::launch
