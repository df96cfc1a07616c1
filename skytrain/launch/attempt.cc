#include "skytrain/launch/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/process_tree.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/elastic/death.h"
#include "skytrain/launch/stop_request.h"

namespace skytrain::launch {
namespace {

const int kInterrupted = exit_code(ErrorKind::kInterrupted);
constexpr double kKillSeconds = 10;
constexpr size_t kQuotedLines = 10, kQuotedBytes = 8192;

double now() { return Clock::real().monotonic_seconds(); }

void drain(int fd) {
  char bytes[64];
  while (::read(fd, bytes, sizeof bytes) > 0) {
  }
}

std::string processes(int count) { return str(count, count == 1 ? " process" : " processes"); }

}  // namespace

struct Attempt::Rank {
  std::unique_ptr<RankOutput> output;  // null: the command has our own descriptors
  std::unique_ptr<RankProcess> process;
  std::optional<RankEnd> end;
  bool told_to_end = false;
};

Attempt::Attempt(AttemptParts parts) : parts_(std::move(parts)), oom_kills_before_(elastic::oom_kills_so_far()) {}

Attempt::~Attempt() {
  for (const auto& rank : ranks_) {
    if (rank->process) rank->process->kill_all();  // all at once, before each is waited for
  }
}

void Attempt::run() {
  start();
  while (!all_gone()) {
    wait_for_something();
    follow_signals();
    if (parts_.link != nullptr) follow_head();
    for (size_t i = 0; i < ranks_.size(); ++i) follow_reports(static_cast<int>(i));
    find_failure();
    pass_deadline();
  }
  for (const auto& rank : ranks_) {
    rank->process.reset();
    if (rank->output) rank->output->finish();
  }
  if (!failure_) return;
  const auto& output = ranks_[static_cast<size_t>(failure_->rank - parts_.place.first_rank)]->output;
  if (output) failure_->last_words = output->last_lines(kQuotedLines);
  if (parts_.link != nullptr) tell_failure(*failure_);
}

void Attempt::start() {
  const JobOptions& options = parts_.options;
  const bool alone = parts_.place.world_size == 1;
  const bool inherits = alone && options.log_directory.empty() && parts_.link == nullptr;
  const int out = options.stdout_to_stderr ? 2 : 1;
  for (int i = 0; i < options.ranks; ++i) {
    ranks_.push_back(std::make_unique<Rank>());
    Rank& rank = *ranks_.back();
    RankProcess::Options start;
    start.shim = options.shim;
    start.program = options.program;
    start.command = options.command;
    start.environment = rank_environment(parts_.place, i);
    start.environment.insert(start.environment.end(), parts_.environment.begin(), parts_.environment.end());
    start.out = out;
    // A group in the background that reads the terminal is stopped; and one input is for one rank.
    const Fd null = options.ranks > 1 || ::isatty(0) != 0 ? Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)) : Fd();
    start.in = null ? null.get() : 0;
    if (!inherits) {
      const int number = parts_.place.first_rank + i;
      const std::string prefix = alone ? "" : str("[", number, "] ");
      rank.output = std::make_unique<RankOutput>(number, prefix, out, 2, parts_.logs, parts_.queue);
      start.out = rank.output->rank_out();
      start.err = rank.output->rank_err();
    }
    rank.process = std::make_unique<RankProcess>(start);
    if (rank.output) rank.output->close_rank_ends();
  }
}

std::vector<RankEnd> Attempt::ends() const {
  std::vector<RankEnd> ends;
  for (const auto& rank : ranks_) ends.push_back(*rank->end);
  return ends;
}

bool Attempt::all_gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->process->closed(); });
}

void Attempt::wait_for_something() {
  std::vector<pollfd> fds = {{StopSignal::fd(), POLLIN, 0}};
  const auto add = [&](int fd, short events) {
    if (fd >= 0) fds.push_back({fd, events, 0});
    return fd >= 0 ? fds.size() - 1 : 0;
  };
  const size_t wake = add(parts_.wake_fd, POLLIN);
  if (parts_.link != nullptr && !head_lost_) add(parts_.link->fd(), POLLIN);
  const size_t target = add(parts_.queue.fd(), POLLOUT);
  std::vector<std::array<size_t, 2>> outputs(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i]->process->closed()) add(ranks_[i]->process->fd(), POLLIN);
    if (!ranks_[i]->output || parts_.queue.full()) continue;
    for (int stream = 0; stream < 2; ++stream) {
      outputs[i][static_cast<size_t>(stream)] = add(ranks_[i]->output->fd(stream), POLLIN);
    }
  }
  int milliseconds = -1;
  if (deadline_ && !killed_) {
    milliseconds = static_cast<int>(std::clamp(std::ceil((*deadline_ - now()) * 1000), 0.0, 1e9));
  }
  if (::poll(fds.data(), fds.size(), milliseconds) <= 0) return;
  if (fds[0].revents != 0) drain(StopSignal::fd());
  if (wake != 0 && fds[wake].revents != 0) {
    drain(parts_.wake_fd);
    parts_.on_wake();
  }
  if (target != 0 && fds[target].revents != 0) parts_.queue.write_some();
  for (size_t i = 0; i < ranks_.size(); ++i) {
    for (int stream = 0; stream < 2; ++stream) {
      const size_t at = outputs[i][static_cast<size_t>(stream)];
      if (at != 0 && fds[at].revents != 0) ranks_[i]->output->read(stream);
    }
  }
  parts_.queue.write_some();
}

void Attempt::follow_signals() {
  const StopRequest request = stop_request();
  if (request.now && !aborted_) {
    aborted_ = true;
    if (parts_.link != nullptr) parts_.link->send(message::Abort{});
    kill_all();
  }
  if (!request.stop || aborted_) return;
  const int signo = request.signo;
  Notice& notice = parts_.notice;
  const double grace = parts_.options.grace_seconds;
  // Nobody kills after a Ctrl-C but whoever presses it again.
  const std::optional<double> seconds = signo == SIGINT ? std::nullopt : std::optional(grace);
  if (notice.reason.empty()) {
    give_notice(name_of_signal(signo), seconds);
    if (parts_.link != nullptr) parts_.link->send(message::NoticeGiven{notice.reason, seconds.value_or(-1)});
  } else if (signo != SIGINT &&
             (!notice.own || (notice.reason != "SIGTERM" && notice.reason != "SIGINT" && signo == SIGTERM))) {
    if (signo == SIGTERM && notice.reason != "SIGTERM") {
      notice.reason = "SIGTERM";
      parts_.queue.say("SIGTERM: the notice stands; ranks that are left are killed at its end");
    }
    shorten_notice(grace);
    if (parts_.link != nullptr) parts_.link->send(message::NoticeGiven{notice.reason, grace});
  }
  notice.own = true;
}

void Attempt::shorten_notice(double seconds) {
  const double deadline = now() + seconds;
  parts_.notice.deadline = std::min(parts_.notice.deadline.value_or(deadline), deadline);
  deadline_ = std::min(deadline_.value_or(deadline), *parts_.notice.deadline);
}

void Attempt::give_notice(const std::string& reason, std::optional<double> seconds) {
  Notice& notice = parts_.notice;
  notice.reason = reason;
  if (seconds) notice.deadline = now() + *seconds;
  notice.signo = reason == "SIGINT" ? SIGINT : parts_.options.notice_signal;
  tell_ranks_of_notice();
  if (notice.deadline) deadline_ = std::min(deadline_.value_or(*notice.deadline), *notice.deadline);
  const bool one = ranks_.size() == 1;
  parts_.queue.say(
      str(notice.reason, notice.from_elsewhere ? " on another node" : "", ": passed on to ",
          one ? "the program" : str("all ", ranks_.size(), " ranks"),
          seconds ? str("; what runs in ", human_seconds(*seconds), " is killed") : "; a second Ctrl-C kills at once"));
}

void Attempt::tell_ranks_of_notice() {
  const Notice& notice = parts_.notice;
  const double unix_now = Clock::real().unix_seconds();
  std::optional<double> unix_deadline;
  if (notice.deadline) unix_deadline = unix_now + (*notice.deadline - now());
  try {
    parts_.notice_file.write(notice.reason, unix_now, unix_deadline);
  } catch (const Error& error) {  // the signal still tells
    parts_.queue.say(str("warning: ", error.message()));
  }
  for (const auto& rank : ranks_) {
    if (rank->end || rank->told_to_end) continue;
    if (notice.signo == SIGUSR1) {
      rank->process->signal(SIGUSR1);
    } else {
      rank->process->signal_group(notice.signo);
    }
  }
}

void Attempt::follow_head() {
  while (const auto message = parts_.link->take()) {
    if (const auto* note = std::get_if<message::Note>(&*message)) parts_.queue.say(note->text);
    if (const auto* notice = std::get_if<message::NoticeGiven>(&*message)) on_remote_notice(*notice);
    if (std::holds_alternative<message::Ending>(*message) && !parts_.notice.reason.empty() && !deadline_) {
      deadline_ = now() + parts_.options.grace_seconds;
    }
    const auto* stop = std::get_if<message::Stop>(&*message);
    if (stop != nullptr && stop->attempt == parts_.number && std::isinf(ending_since_)) end_others(stop->failure);
    if (std::holds_alternative<message::Abort>(*message) && !aborted_) {
      aborted_ = true;
      parts_.queue.say("stopped at once from another node");
      kill_all();
    }
  }
  if (const std::string why = parts_.link->lost(); !why.empty() && !head_lost_) {
    head_lost_ = true;
    Failure failure;
    failure.rank = -1;
    failure.node = 0;
    failure.host = "the head";
    failure.cause = "lost: " + why;
    if (std::isinf(ending_since_)) end_others(failure);
  }
}

void Attempt::on_remote_notice(const message::NoticeGiven& given) {
  Notice& notice = parts_.notice;
  const std::optional<double> seconds = given.seconds_left < 0 ? std::nullopt : std::optional(given.seconds_left);
  if (notice.reason.empty()) {
    notice.from_elsewhere = true;
    give_notice(printable(given.reason, 20), seconds);
  } else if (seconds) {
    shorten_notice(*seconds);
  }
}

void Attempt::follow_reports(int number) {
  Rank& rank = *ranks_[static_cast<size_t>(number)];
  if (rank.process->closed()) return;
  while (const auto report = rank.process->receive()) {
    if (report->what == ShimReport::What::kEnded) {
      RankEnd end;
      end.status = {report->signalled != 0, report->code};
      end.monotonic_seconds = report->monotonic_seconds;
      on_ended(number, end);
    } else if (report->what == ShimReport::What::kCleaned && !killed_ && report->count > 0) {
      parts_.queue.say(str("rank ", parts_.place.first_rank + number, " left ", processes(report->count), " behind (",
                           report->text, "): killed"));
    }
    if (report->what == ShimReport::What::kCleaned && report->stuck > 0) {
      parts_.queue.say(str("warning: ", processes(report->stuck), " of rank ", parts_.place.first_rank + number,
                           " did not end by SIGKILL: stuck in the kernel, on a disk or a device"));
    }
  }
  if (rank.process->closed() && !rank.end) on_lost(number);
}

// Someone killed the shim. The command died with it, and what that had started is ours by now.
void Attempt::on_lost(int number) {
  // Its descriptors are closed before its children get another parent.
  ranks_[static_cast<size_t>(number)]->process->wait_for_shim();
  std::vector<pid_t> spared;
  for (const auto& rank : ranks_) {
    if (!rank->process->closed()) spared.push_back(rank->process->shim_pid());
  }
  kill_descendants(kKillSeconds, reap_child, spared);
  RankEnd end;
  end.status = {true, SIGKILL};
  end.monotonic_seconds = now();
  end.lost = true;
  on_ended(number, end);
}

void Attempt::on_ended(int number, const RankEnd& end) {
  Rank& rank = *ranks_[static_cast<size_t>(number)];
  rank.end = end;
  rank.end->killed = killed_ && end.status.signalled && end.status.code == SIGKILL;
  const bool orderly = end.status.ok() || (!end.status.signalled && end.status.code == kInterrupted);
  orderly_ = orderly_ && orderly;
  if (!orderly && parts_.on_disorder) parts_.on_disorder();
  // The others of one that has followed a Ctrl-C may wait for it in a collective for ever.
  if (!parts_.notice.reason.empty() && !deadline_) deadline_ = now() + parts_.options.grace_seconds;
}

bool Attempt::ended_well(const RankEnd& end) const {
  if (end.status.ok()) return true;
  const Notice& notice = parts_.notice;
  if (notice.reason.empty() || end.killed || end.lost) return false;
  // Slurm sends its notice to each process of a step itself.
  if (end.status.signalled) return end.status.code == notice.signo || name_of_signal(end.status.code) == notice.reason;
  return end.status.code == kInterrupted || end.status.code == 128 + notice.signo;
}

// The first one, by the time of its end: a crash takes others with it within milliseconds.
void Attempt::find_failure() {
  if (aborted_) return;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto& end = ranks_[i]->end;
    if (!end || ended_well(*end) || end->monotonic_seconds > ending_since_) continue;
    if (!failure_ || end->monotonic_seconds < failure_->end.monotonic_seconds) {
      failure_.emplace();
      failure_->rank = parts_.place.first_rank + static_cast<int>(i);
      failure_->end = *end;
      failure_->oom_killer_struck = elastic::oom_kills_so_far() > oom_kills_before_;
      failure_->grace_seconds = parts_.options.grace_seconds;
    }
  }
  if (!failure_ || !std::isinf(ending_since_)) return;
  if (parts_.link != nullptr) tell_failure(*failure_);
  end_others(*failure_);
}

void Attempt::tell_failure(const Failure& failure) {
  message::Failing failing{parts_.number, failure, std::max(0.0, now() - failure.end.monotonic_seconds)};
  if (failing.failure.last_words.size() > kQuotedBytes) failing.failure.last_words.resize(kQuotedBytes);
  parts_.link->send(failing);
}

void Attempt::end_others(const Failure& failure) {
  ending_since_ = now();
  if (parts_.on_disorder) parts_.on_disorder();  // of another node, too
  bool others = false;
  for (const auto& rank : ranks_) {
    if (rank->end) continue;
    others = true;
    rank->told_to_end = true;
    // One that a notice has reached is about to save.
    if (parts_.notice.reason.empty()) rank->process->signal_group(SIGTERM);
  }
  const double deadline = now() + parts_.options.grace_seconds;
  deadline_ = std::min(deadline_.value_or(deadline), deadline);
  const double grace = parts_.options.grace_seconds;
  if (others) {
    parts_.queue.say(
        str(name_of(failure), " ", describe(failure), "; the others have ", human_seconds(grace), " to end"));
  }
}

void Attempt::pass_deadline() {
  if (deadline_ && !killed_ && now() >= *deadline_) kill_all();
}

void Attempt::kill_all() {
  killed_ = true;
  for (const auto& rank : ranks_) rank->process->kill_all();
}

}  // namespace skytrain::launch
