#include "skytrain/elastic/worker_process.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <optional>

#include "skytrain/base/clock.h"
#include "skytrain/base/process.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/base/text.h"
#include "skytrain/elastic/death.h"
#include "skytrain/proto/channel.h"

namespace skytrain::elastic {
namespace {

constexpr int kQuotedLines = 6;
constexpr double kSecondsBetweenSignals = 0.2;  // of one request, to two processes
constexpr double kNever = std::numeric_limits<double>::infinity();

using Outcome = std::variant<proto::Finished, proto::Interrupted, Error>;

// Empties a pipe or eventfd that only wakes us: what counts is StopSignal::requests().
void drain(int fd) {
  pollfd poll_fd{fd, POLLIN, 0};
  while (::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLIN) != 0) {
    char bytes[64];
    if (::read(fd, bytes, sizeof bytes) <= 0) return;
  }
}

class WorkerRun {
 public:
  WorkerRun(const WorkerOptions& options, WorkerObserver& observer)
      : WorkerRun(options, observer, stream_socket_pair()) {}

  WorkerEnd run() {
    WorkerEnd end{follow()};
    const bool spoke_its_last_word = !std::holds_alternative<Error>(end.outcome) || reported_failure_;
    if (out_of_time_) end_group();
    const double patience = std::min(options_.exit_seconds, std::max(0.0, kill_time() - now()));
    const bool ended = has_ended(spoke_its_last_word ? patience : 0);
    const ExitStatus status = end_group();
    if (ended && status.signalled && spoke_its_last_word && !out_of_time_) {
      observer_.on_note({"warning", "skytrain-worker " + status.describe() + " after its last word"});
    }
    end.peak_rss_bytes = child_.peak_rss_bytes();
    end.progressed = last_step_ > 0;
    end.died = died_;
    end.recipe = std::move(recipe_);
    return end;
  }

 private:
  WorkerRun(const WorkerOptions& options, WorkerObserver& observer, std::pair<Fd, Fd> ends)
      : options_(options),
        observer_(observer),
        log_begin_(file_size_or_zero(options.log_file)),
        oom_kills_before_(oom_kills_so_far()),
        channel_(std::move(ends.first)),
        child_(spawn(options, std::move(ends.second))) {}

  static ChildProcess spawn(const WorkerOptions& options, Fd worker_end) {
    ChildProcess::Options spawn_options;
    spawn_options.argv = {options.program};
    spawn_options.fds = options.fds;
    spawn_options.fds.emplace_back(worker_end.get(), proto::kWorkerFd);
    spawn_options.stdout_stderr_file = options.log_file;
    spawn_options.new_process_group = true;
    return ChildProcess::spawn(spawn_options);
  }

  Outcome follow() {
    try {
      while (true) {
        // Asked before the channel is emptied, so that the last words of a worker that has ended are all read.
        const bool ended = has_ended(0);
        while (const auto frame = channel_.receive(0)) {
          if (auto outcome = std::visit([this](const auto& m) { return handle(m); }, proto::decode(*frame))) {
            return *std::move(outcome);
          }
        }
        if (ended || channel_.closed()) return lost();
        if (auto outcome = carry_stop_requests()) return *std::move(outcome);
        if (now() >= kill_time()) return killed_in_time();
        if (!started_ && now() > hello_deadline_) return too_late();
        wait_for_something();
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInternal) return error;
      return Error(ErrorKind::kInternal, "skytrain-worker", error.problem(), last_words_hint());
    }
  }

  void wait_for_something() {
    pollfd fds[] = {{channel_.fd(), POLLIN, 0}, {child_.pidfd(), POLLIN, 0}, {StopSignal::fd(), POLLIN, 0}};
    const double until = std::min(kill_time(), started_ ? kNever : hello_deadline_);
    const int milliseconds =
        until == kNever ? -1 : static_cast<int>(std::clamp(std::ceil((until - now()) * 1000), 0.0, 1e9));
    if (::poll(fds, std::size(fds), milliseconds) > 0 && (fds[2].revents & POLLIN) != 0) drain(StopSignal::fd());
  }

  std::optional<Outcome> carry_stop_requests() {
    const int requests = StopSignal::requests();
    if (requests >= 2) {
      return Error(ErrorKind::kAborted, "",
                   str("stopped at once", last_step_ > 0 ? str(" after step ", last_step_) : ""),
                   "what was trained since the newest checkpoint is lost; the same command resumes from there");
    }
    // A worker that has not said hello gets the request after its recipe: it knows how to end without a trace.
    // A kill that is announced later, while it saves, is told too.
    const bool announced = kill_time() != kNever;
    if (requests == 1 && started_ && (!stop_sent_ || announced != announcement_sent_)) {
      stop_sent_ = true;
      announcement_sent_ = announced;
      std::optional<double> seconds;
      if (announced) seconds = std::max(0.0, kill_time() - reserve() - now());
      channel_.send(proto::encode(proto::Stop{seconds}));
      observer_.on_stopping(seconds);
    }
    return std::nullopt;
  }

  // What ending in good order takes, within the grace: the worker's end, and then ours.
  double reserve() const {
    return std::clamp(0.1 * options_.grace_seconds, std::min(0.5, 0.2 * options_.grace_seconds), 3.0);
  }
  double kill_time() const {
    const std::optional<double> announced = StopSignal::announced();
    return announced ? *announced + options_.grace_seconds - reserve() : kNever;
  }

  Outcome killed_in_time() {
    out_of_time_ = true;
    return proto::Interrupted{std::max(last_step_, saved_.step),
                              std::max(last_samples_, saved_.samples),
                              saved_.path,
                              saved_.step,
                              saved_.samples,
                              Json()};
  }

  std::optional<Outcome> handle(const proto::Hello& hello) {
    if (started_) return out_of_order("a second hello");
    proto::check_protocol(hello);
    observer_.on_hello(hello);
    channel_.send(proto::encode(options_.order));
    started_ = true;
    return std::nullopt;
  }
  std::optional<Outcome> handle(const proto::Started& m) {
    saved_.step = m.resume_step;
    saved_.samples = m.resume_samples;
    recipe_ = m.recipe;
    return pass_on("started", &WorkerObserver::on_started, m);
  }
  std::optional<Outcome> handle(const proto::ProgressReport& m) {
    last_step_ = m.step;
    last_samples_ = m.samples;
    return pass_on("progress", &WorkerObserver::on_progress, m);
  }
  std::optional<Outcome> handle(const proto::Note& m) { return pass_on("a note", &WorkerObserver::on_note, m); }
  std::optional<Outcome> handle(const proto::CheckpointDone& m) {
    saved_ = m;
    return pass_on("a checkpoint", &WorkerObserver::on_checkpoint, m);
  }
  std::optional<Outcome> handle(const proto::EvaluationDone& m) {
    return pass_on("an evaluation", &WorkerObserver::on_evaluation, m);
  }
  std::optional<Outcome> handle(const proto::Finished& m) {
    if (!started_) return out_of_order("finished");
    return m;
  }
  std::optional<Outcome> handle(const proto::Interrupted& m) {
    if (!started_) return out_of_order("interrupted");
    return m;
  }
  std::optional<Outcome> handle(const proto::Failed& m) {
    reported_failure_ = true;
    return Error(m.kind, m.where, m.problem, m.hint);
  }
  std::optional<Outcome> handle(const proto::Start&) { return out_of_order("start"); }
  std::optional<Outcome> handle(const proto::Evaluate&) { return out_of_order("evaluate"); }
  std::optional<Outcome> handle(const proto::Trace&) { return out_of_order("trace"); }
  std::optional<Outcome> handle(const proto::Stop&) { return out_of_order("stop"); }

  template <class M>
  std::optional<Outcome> pass_on(const char* name, void (WorkerObserver::*method)(const M&), const M& message) {
    if (!started_) return out_of_order(name);
    (observer_.*method)(message);
    return std::nullopt;
  }

  std::optional<Outcome> out_of_order(const char* what) {
    return Error(ErrorKind::kInternal, "skytrain-worker", str("sent ", what, started_ ? "" : " before its hello"));
  }

  Outcome lost() {
    Death death;
    if (has_ended(options_.exit_seconds)) death.status = end_group();
    if (!started_ && death.status && is_stop(*death.status)) return proto::Interrupted{0, 0, "", 0, 0, Json::object()};
    died_ = true;
    death.had_started = started_;
    death.last_step = last_step_;
    death.oom_killer_struck = oom_kills_so_far() > oom_kills_before_;
    death.log_file = options_.log_file;
    death.last_words = last_lines(options_.log_file, log_begin_, kQuotedLines);
    return death_error(death);
  }

  // Slurm and systemd signal every process of a job: the worker before it could know what to do about it.
  static bool is_stop(const ExitStatus& status) {
    if (!status.signalled) return false;
    if (status.code != SIGTERM && status.code != SIGINT && status.code != SIGUSR1) return false;
    const double deadline = now() + kSecondsBetweenSignals;
    while (StopSignal::requests() == 0 && now() < deadline) Clock::real().sleep_seconds(0.005);
    return StopSignal::requests() > 0;
  }

  Outcome too_late() {
    return Error(ErrorKind::kEnvironment, options_.program,
                 str("skytrain-worker did not answer within ", human_seconds(options_.handshake_seconds)),
                 last_words_hint());
  }

  std::string last_words_hint() const {
    const std::string words = last_lines(options_.log_file, log_begin_, kQuotedLines);
    return words.empty() ? "" : "last lines of " + options_.log_file + ":\n" + words;
  }

  // Kills what is left of the worker's group and reaps the worker. In this order: until it is reaped, its number can't
  // belong to another group.
  ExitStatus end_group() {
    if (!reaped_) ::kill(-child_.pid(), SIGKILL);
    reaped_ = true;
    return *child_.wait();
  }

  // Without reaping it.
  bool has_ended(double wait_seconds) const {
    const double deadline = now() + wait_seconds;
    while (true) {
      pollfd poll_fd{child_.pidfd(), POLLIN, 0};
      const int ready = ::poll(&poll_fd, 1, static_cast<int>(std::ceil(std::max(0.0, deadline - now()) * 1000)));
      if (ready > 0) return true;
      if (now() >= deadline) return false;
    }
  }

  static double now() { return Clock::real().monotonic_seconds(); }

  const WorkerOptions& options_;
  WorkerObserver& observer_;
  const uint64_t log_begin_;
  const uint64_t oom_kills_before_;
  proto::Channel channel_;
  ChildProcess child_;
  const double hello_deadline_ = now() + options_.handshake_seconds;
  bool started_ = false;  // hello received, start sent
  bool stop_sent_ = false;
  bool reported_failure_ = false;
  bool reaped_ = false;
  bool announcement_sent_ = false;
  bool out_of_time_ = false;
  bool died_ = false;
  Json recipe_;
  uint64_t last_step_ = 0, last_samples_ = 0;
  proto::CheckpointDone saved_;  // the newest
};

}  // namespace

WorkerEnd run_worker(const WorkerOptions& options, WorkerObserver& observer) {
  return WorkerRun(options, observer).run();
}

}  // namespace skytrain::elastic
