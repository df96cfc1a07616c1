#include "skytrain/launch/coordinator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr double kTickSeconds = 1;  // also how often each side says that it lives
constexpr double kFirstReminderSeconds = 5, kReminderSeconds = 30;
constexpr double kSameDeadlineSeconds = 0.5;
constexpr int kMostRanks = 4096;  // of a node

std::string nodes_text(int count) { return str(count, count == 1 ? " node" : " nodes"); }

}  // namespace

Coordinator::Coordinator(Options options, Clock& clock, message::Join local)
    : options_(std::move(options)), clock_(clock), last_tick_(clock.monotonic_seconds()) {
  Member member;
  resume_ = local.resume;
  member.join = std::move(local);
  member.seat = 0;
  member.last_seen = last_tick_;
  members_.emplace(kLocal, std::move(member));
  send(kLocal, message::Welcome{options_.node_timeout});
  gather(kFirstReminderSeconds);
  form_if_complete();
}

void Coordinator::connected(int connection, std::string peer, std::string reached) {
  Member member;
  member.peer = std::move(peer);
  member.reached = std::move(reached);
  member.last_seen = clock_.monotonic_seconds();
  members_.emplace(connection, std::move(member));
}

void Coordinator::received(int connection, const NodeMessage& message) {
  const auto at = members_.find(connection);
  if (at == members_.end() || ended()) return;
  at->second.last_seen = clock_.monotonic_seconds();
  if (!at->second.join && !std::holds_alternative<message::Join>(message)) return;
  std::visit([&](const auto& m) { on(connection, m); }, message);
}

void Coordinator::on(int connection, const message::Join& join) {
  Member& member = members_.at(connection);
  if (member.join) return;
  std::string hint;
  if (const std::string what = refusal_of(join, hint); !what.empty()) {
    say(str("refused ", printable(join.host, 60), " (", member.peer, "): ", what));
    send(connection, message::Refused{what, hint}, Out::Then::kClose);
    members_.erase(connection);
    return;
  }
  member.join = join;
  send(connection, message::Welcome{options_.node_timeout});
  if (state_ == State::kGathering) {
    restarts_ = std::max(restarts_, std::min(join.restarts, options_.max_restarts));
    form_if_complete();
  }
  if (member.seat < 0 && present() >= options_.nodes) {
    send(connection, message::Note{"the job has all its nodes: waiting to take the place of one that is lost"});
    say(str(printable(join.host, 60), " (", member.peer, ") is one more than the job needs: it waits"));
  }
}

// "": welcome.
std::string Coordinator::refusal_of(const message::Join& join, std::string& hint) const {
  const message::Join& ours = *members_.at(kLocal).join;
  if (join.command != ours.command) {
    hint = "give all nodes the same words after --";
    return "it runs another command than the head";
  }
  if (join.nodes != options_.nodes) {
    hint = "give all nodes the same --nodes";
    return str("--nodes is ", join.nodes, " there and ", options_.nodes, " at the head");
  }
  if (join.ranks < 1 || join.ranks > kMostRanks) return "its number of ranks is none";
  if (join.asked && (join.node_rank < 1 || join.node_rank >= options_.nodes)) {
    hint = str("the head is node 0; the others are 1 to ", options_.nodes - 1);
    return str("--node-rank ", join.node_rank, join.node_rank == 0 ? " is the head's" : " is beyond --nodes");
  }
  // A node that was lost and is back may find its old self not yet given up.
  const bool patient = attempt_ > 0 && may_restart();
  if (patient) return "";
  for (const auto& [connection, member] : members_) {
    if (!member.join || !join.asked) continue;
    const bool same = member.seat == join.node_rank || (member.join->asked && member.join->node_rank == join.node_rank);
    if (!same) continue;
    hint = "each node needs a number of its own, or none";
    return str("--node-rank ", join.node_rank, " is that of ", printable(member.join->host, 60), " (", member.peer,
               ") too");
  }
  if (present() >= options_.nodes) {
    hint = "start no more nodes than --nodes";
    return str("all ", options_.nodes, " nodes of the job are here");
  }
  return "";
}

int Coordinator::present() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.join.has_value(); }));
}

bool Coordinator::may_restart() const { return restarts_ < options_.max_restarts && !noticed_ && !aborted_; }

void Coordinator::gather(double seconds) {
  state_ = State::kGathering;
  const double now = clock_.monotonic_seconds();
  join_deadline_ = now + options_.join_timeout;
  next_reminder_ = now + seconds;
}

bool Coordinator::fill_seats() {
  std::map<int, int> seats = {{0, kLocal}};  // seat -> connection
  std::set<int> seated = {kLocal};
  const auto take_seat = [&](int connection, int seat) {
    if (seat <= 0 || seat >= options_.nodes || seated.count(connection) != 0) return;
    if (seats.emplace(seat, connection).second) seated.insert(connection);
  };
  const auto each = [&](const auto& wish) {
    for (const auto& [connection, member] : members_) {
      if (member.join) take_seat(connection, wish(member));
    }
  };
  each([](const Member& member) { return member.seat; });
  each([](const Member& member) { return member.join->asked ? member.join->node_rank : -1; });
  each([](const Member& member) { return member.join->asked ? -1 : member.join->node_rank; });
  for (const auto& [seat, host] : hosts_) {
    for (const auto& [connection, member] : members_) {
      if (member.join && !member.join->asked && member.join->host == host) take_seat(connection, seat);
    }
  }
  for (const auto& [connection, member] : members_) {
    if (!member.join || member.join->asked) continue;
    for (int seat = 1; seat < options_.nodes && seated.count(connection) == 0; ++seat) take_seat(connection, seat);
  }
  if (static_cast<int>(seats.size()) < options_.nodes) return false;
  for (auto& [connection, member] : members_) member.seat = -1;
  for (const auto& [seat, connection] : seats) members_.at(connection).seat = seat;
  return true;
}

void Coordinator::form_if_complete() {
  if (state_ == State::kGathering && fill_seats()) form();
}

void Coordinator::form() {
  ++attempt_;
  state_ = State::kRunning;
  failure_.reset();
  failure_time_ = ending_since_ = INFINITY;
  noticed_running_ = false;
  orderly_ = true;
  hosts_.clear();
  std::map<int, int> seats;
  for (auto& [connection, member] : members_) {
    member.ended = member.settled = false;
    if (member.seat >= 0) seats[member.seat] = connection;
  }
  message::Start start;
  start.attempt = attempt_;
  start.nodes = options_.nodes;
  start.run_id = options_.run_id;
  start.restarts = restarts_;
  start.max_restarts = options_.max_restarts;
  start.resume = resume_;
  start.master_port = options_.free_port();
  for (const auto& [seat, connection] : seats) start.world_size += members_.at(connection).join->ranks;
  --start.world_size;  // that it began with
  for (const auto& [seat, connection] : seats) {
    const Member& member = members_.at(connection);
    hosts_[seat] = member.join->host;
    start.node_rank = seat;
    // As each reaches the head; the head itself as node 1 does.
    const Member& other = connection == kLocal && seats.size() > 1 ? members_.at(seats.at(1)) : member;
    start.master_address = other.reached.empty() ? "127.0.0.1" : other.reached;
    send(connection, start);
    start.first_rank += member.join->ranks;
  }
}

void Coordinator::failed(const Failure& failure, double when) {
  const bool first = !failure_;
  // Said again by its node, with its last words; or one that was earlier.
  const bool same = !first && failure.node == failure_->node && failure.rank == failure_->rank;
  if (first || same || (when < failure_time_ && when <= ending_since_)) {
    failure_ = failure;
    failure_time_ = std::min(failure_time_, when);
  }
  if (!first) return;
  ending_since_ = clock_.monotonic_seconds();
  send_others(-1, message::Stop{attempt_, failure});
}

void Coordinator::on(int connection, const message::Failing& failing) {
  const Member& member = members_.at(connection);
  if (state_ != State::kRunning || failing.attempt != attempt_ || member.seat < 0) return;
  Failure failure = failing.failure;
  failure.node = member.seat;
  failure.host = member.join->host;
  failed(failure, clock_.monotonic_seconds() - std::max(0.0, failing.seconds_ago));
}

void Coordinator::on(int connection, const message::Ended& ended) {
  Member& member = members_.at(connection);
  if (state_ != State::kRunning || ended.attempt != attempt_ || member.seat < 0) return;
  member.ended = true;
  orderly_ = orderly_ && ended.orderly;
  if (noticed_running_) send_others(connection, message::Ending{});
  check_all_ended();
}

void Coordinator::check_all_ended() {
  if (state_ != State::kRunning) return;
  for (const auto& [connection, member] : members_) {
    if (member.seat >= 0 && !member.ended) return;
  }
  state_ = State::kSettling;
  send_others(-1, message::AllEnded{attempt_, orderly_ && !failure_ && !aborted_});
}

void Coordinator::on(int connection, const message::Settled& settled) {
  Member& member = members_.at(connection);
  if (state_ != State::kSettling || settled.attempt != attempt_ || member.seat < 0) return;
  member.settled = true;
  if (connection == kLocal) resume_ = settled.resume;
  check_all_settled();
}

void Coordinator::check_all_settled() {
  if (state_ != State::kSettling) return;
  for (const auto& [connection, member] : members_) {
    if (member.seat >= 0 && !member.settled) return;
  }
  decide();
}

void Coordinator::decide() {
  if (aborted_) return end(JobEnd::Kind::kAborted);
  if (!failure_) return end(noticed_running_ ? JobEnd::Kind::kInterrupted : JobEnd::Kind::kDone);
  const bool cannot_start = failure_->cause_code == exit_code(ErrorKind::kEnvironment);
  if (!may_restart() || cannot_start) return end(JobEnd::Kind::kFailed);
  ++restarts_;
  gather(0);
  form_if_complete();
}

void Coordinator::on(int connection, const message::NoticeGiven& notice) {
  const Member& member = members_.at(connection);
  if (state_ == State::kGathering) {
    if (attempt_ == 0 && connection != kLocal) {  // it goes before anything has begun; another may come in its place
      say(str(name_of(member), " left: ", printable(notice.reason, 20)));
      message::End end;
      end.kind = static_cast<int>(JobEnd::Kind::kInterrupted);
      send(connection, end, Out::Then::kClose);
      members_.erase(connection);
      return;
    }
    return end(JobEnd::Kind::kInterrupted);
  }
  noticed_ = true;
  if (state_ != State::kRunning) return;
  // Where a cluster tells all nodes at once, each needs to hear of it once more only if it leaves less time.
  const double deadline = notice.seconds_left < 0 ? INFINITY : clock_.monotonic_seconds() + notice.seconds_left;
  if (noticed_running_ && !(deadline < notice_deadline_ - kSameDeadlineSeconds)) return;
  notice_deadline_ = deadline;
  noticed_running_ = true;
  send_others(connection, notice);
}

void Coordinator::on(int connection, const message::Abort& abort) {
  if (state_ == State::kGathering && attempt_ == 0 && connection != kLocal) {
    return on(connection, message::NoticeGiven{"stopped", -1});
  }
  aborted_ = true;
  if (state_ == State::kGathering) return end(JobEnd::Kind::kAborted);
  if (state_ == State::kRunning) send_others(connection, abort);
}

void Coordinator::gone(int connection, const std::string& why) {
  const auto at = members_.find(connection);
  if (at == members_.end() || ended()) return;
  const Member member = at->second;
  members_.erase(at);
  if (member.seat < 0 || state_ == State::kGathering) {
    if (member.join) say(str(name_of(member), " left: ", why));
    return;
  }
  if (state_ == State::kRunning && !member.ended) {
    Failure failure;
    failure.rank = -1;
    failure.node = member.seat;
    failure.host = str(printable(member.join->host, 60), ", ", member.peer);
    failure.cause = str("lost: ", why);
    failure.cause_code = exit_code(ErrorKind::kLostWorkers);
    orderly_ = false;
    failed(failure, clock_.monotonic_seconds());
    return check_all_ended();
  }
  say(str(name_of(member), " left: ", why));
  check_all_ended();
  check_all_settled();
}

void Coordinator::tick() {
  if (ended()) return;
  const double now = clock_.monotonic_seconds();
  // This process was stopped, or the machine slept: the time was nobody's.
  const double pause = now - last_tick_;
  last_tick_ = now;
  std::vector<int> silent;
  for (auto& [connection, member] : members_) {
    if (connection == kLocal || pause > options_.node_timeout / 2) member.last_seen = now;
    send(connection, message::Alive{});
    if (now - member.last_seen > options_.node_timeout) silent.push_back(connection);
  }
  for (const int connection : silent) {
    send(connection, message::Alive{}, Out::Then::kDrop);
    gone(connection, str("it has said nothing for ", human_seconds(options_.node_timeout)));
  }
  if (state_ != State::kGathering) return;
  if (now >= join_deadline_) return give_up_waiting();
  if (now >= next_reminder_) {
    next_reminder_ = now + kReminderSeconds;
    const int missing = options_.nodes - std::min(present(), options_.nodes);
    say(str("waiting for ", missing, " of ", nodes_text(options_.nodes), " at ", options_.address, " for ",
            human_seconds(join_deadline_ - now), " at most"));
  }
}

double Coordinator::next_tick() const { return last_tick_ + kTickSeconds; }

void Coordinator::give_up_waiting() {
  if (!failure_) {
    Failure failure;
    failure.rank = -1;
    const int missing = options_.nodes - std::min(present(), options_.nodes);
    failure.cause =
        str(missing, " of ", nodes_text(options_.nodes), " did not join within ", human_seconds(options_.join_timeout));
    failure.cause_hint = str("the head listens at ", options_.address,
                             "; start the same command there, and see whether a firewall is between");
    failure.cause_code = exit_code(ErrorKind::kEnvironment);
    failure_ = failure;
  } else {
    failure_->cause_hint = str("and no node came in its place within ", human_seconds(options_.join_timeout));
  }
  end(JobEnd::Kind::kFailed);
}

void Coordinator::end(JobEnd::Kind kind) {
  state_ = State::kEnded;
  message::End end;
  end.kind = static_cast<int>(kind);
  end.restarts = restarts_;
  end.has_failure = kind == JobEnd::Kind::kFailed;
  if (end.has_failure) end.failure = *failure_;
  for (const auto& [connection, member] : members_) send(connection, end, Out::Then::kClose);
}

std::string Coordinator::name_of(const Member& member) const {
  const std::string host = str(printable(member.join->host, 60), ", ", member.peer);
  return member.seat < 0 ? str("a node (", host, ")") : str("node ", member.seat, " (", host, ")");
}

void Coordinator::say(const std::string& text) { send(kLocal, message::Note{text}); }

void Coordinator::send(int connection, NodeMessage message, Out::Then then) {
  out_.push_back({connection, std::move(message), then});
}

void Coordinator::send_others(int but, const NodeMessage& message, bool with_ranks_only) {
  for (const auto& [connection, member] : members_) {
    if (connection != but && (member.seat >= 0 || !with_ranks_only)) send(connection, message);
  }
}

std::vector<Coordinator::Out> Coordinator::take() { return std::exchange(out_, {}); }

}  // namespace skytrain::launch
