#include "skytrain/launch/job.h"

#include <cstdlib>
#include <functional>
#include <memory>

#include "skytrain/base/error.h"
#include "skytrain/base/process_tree.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/attempt.h"
#include "skytrain/launch/commit_thread.h"
#include "skytrain/launch/node_session.h"
#include "skytrain/launch/stop_request.h"

namespace skytrain::launch {
namespace {

constexpr double kFlushSeconds = 5;
constexpr char kResumeVariable[] = "SKYTRAIN_RESUME_FROM";

class Job {
 public:
  explicit Job(const JobOptions& options)
      : options_(options), notice_file_(FileSystem::real()), run_id_(new_run_id()) {}

  // A slow reader gets all of it, unless someone wants us gone.
  ~Job() {
    do {
      queue_.flush(kFlushSeconds);
    } while (!queue_.empty() && !stop_request().stop);
  }

  JobEnd run() {
    become_subreaper();
    take_hangup_as_a_notice();
    ::unsetenv(kKeyVariable);  // programs print their environment
    if (options_.nodes) session_ = std::make_unique<NodeSession>(options_, queue_);
    if (options_.commit) start_committing();
    JobEnd end;
    if (session_) {
      run_on_nodes(end);
    } else {
      run_here(end);
    }
    if (committer_) {
      tell_notes();
      end.committed = committer_->committed();
    }
    return end;
  }

 private:
  void start_committing() {
    ::unsetenv(kResumeVariable);  // an outer job's
    if (session_ && !session_->is_head()) return;
    committer_.emplace(*options_.commit);
    tell_notes();
  }

  void run_here(JobEnd& end) {
    while (true) {
      if (const StopRequest request = stop_request(); request.stop) {
        end.kind = request.now ? JobEnd::Kind::kAborted : JobEnd::Kind::kInterrupted;
        return;
      }
      JobPlace place;
      place.local_world_size = place.world_size = options_.ranks;
      place.master_port = free_port();
      place.run_id = run_id_;
      place.restart_count = end.restarts;
      place.max_restarts = options_.max_restarts;
      if (!attempt(place, end)) return;
      ++end.restarts;
    }
  }

  // true: once more.
  bool attempt(const JobPlace& place, JobEnd& end) {
    const Environment further = environment(newest());
    if (end.restarts == 0) announce(place);
    const auto attempt = make_attempt(place, further, 0);
    attempt->run();
    note_attempt(place, *attempt, end);
    end.failure = attempt->failure();
    if (attempt->aborted()) {
      end.kind = JobEnd::Kind::kAborted;
    } else if (end.failure) {
      end.kind = JobEnd::Kind::kFailed;
    } else {
      end.kind = notice_.reason.empty() ? JobEnd::Kind::kDone : JobEnd::Kind::kInterrupted;
    }
    const bool again = end.kind == JobEnd::Kind::kFailed && end.restarts < options_.max_restarts &&
                       notice_.reason.empty() && !stop_request().stop;
    commit_the_rest(attempt->orderly() && end.kind != JobEnd::Kind::kAborted);
    if (again) say_again(*end.failure, end.restarts + 1, options_.max_restarts, options_.ranks);
    return again;
  }

  void run_on_nodes(JobEnd& end) {
    if (session_->left()) {
      end.kind = stop_request().now ? JobEnd::Kind::kAborted : JobEnd::Kind::kInterrupted;
      return;
    }
    session_->join(newest().value_or(""));
    while (const auto start = session_->await_start(end)) attempt_on_nodes(*start, end);
  }

  void attempt_on_nodes(const message::Start& start, JobEnd& end) {
    const JobPlace place = place_of(start);
    announce(place);
    const std::string resume = start.resume;
    const Environment further = environment(resume.empty() ? std::nullopt : std::optional(resume));
    message::Ended ended{start.attempt, false};
    std::unique_ptr<Attempt> attempt;
    try {
      attempt = make_attempt(place, further, start.attempt);
      attempt->run();
      note_attempt(place, *attempt, end);
      ended.orderly = attempt->orderly() && !attempt->aborted();
    } catch (const Error& error) {  // the program can't be started here
      attempt.reset();
      message::Failing failing;
      failing.attempt = start.attempt;
      failing.failure.rank = -1;
      failing.failure.cause = error.where().empty() ? error.problem() : str(error.where(), ": ", error.problem());
      failing.failure.cause_hint = error.hint();
      failing.failure.cause_code = exit_code(error.kind());
      session_->link().send(failing);
    }
    bool noticed = !notice_.reason.empty();
    const bool orderly = session_->await_all_ended(ended, noticed);
    if (noticed && notice_.reason.empty()) notice_.reason = "notice";
    commit_the_rest(orderly);
    // After an orderly end there is no other attempt.
    session_->settled(orderly ? "" : newest().value_or(""));
  }

  JobPlace place_of(const message::Start& start) const {
    JobPlace place;
    place.local_world_size = options_.ranks;
    place.group_rank = start.node_rank;
    place.group_world_size = start.nodes;
    place.first_rank = start.first_rank;
    place.world_size = start.world_size;
    place.master_address = start.master_address;
    place.master_port = start.master_port;
    place.run_id = start.run_id;
    place.restart_count = start.restarts;
    place.max_restarts = start.max_restarts;
    return place;
  }

  std::unique_ptr<Attempt> make_attempt(const JobPlace& place, const Environment& further, int number) {
    open_logs(place);
    return std::make_unique<Attempt>(AttemptParts{options_, place, further, notice_file_, *logs_, queue_, notice_,
                                                  committer_ ? committer_->wake_fd() : -1, [this] { tell_notes(); },
                                                  [this] {
                                                    if (committer_) committer_->suspend();
                                                  },
                                                  session_ ? &session_->link() : nullptr, number});
  }

  // Numbers of ranks may change when another machine takes a place.
  void open_logs(const JobPlace& place) {
    if (logs_ && logs_first_ == place.first_rank) return;
    logs_first_ = place.first_rank;
    std::string folder = options_.log_directory;
    if (session_ && !folder.empty()) folder += str("/node-", place.group_rank);
    logs_.reset();
    logs_.emplace(FileSystem::real(), folder, place.first_rank, options_.ranks, queue_);
  }

  void note_attempt(const JobPlace& place, const Attempt& attempt, JobEnd& end) {
    end.ranks = attempt.ends();
    end.first_rank = place.first_rank;
    end.world_size = place.world_size;
    end.node_rank = place.group_rank;
  }

  void commit_the_rest(bool orderly) {
    if (!committer_) return;
    committer_->end_of_attempt(orderly);
    tell_notes();
  }

  std::optional<std::string> newest() { return committer_ ? committer_->newest_valid() : std::nullopt; }

  Environment environment(const std::optional<std::string>& resume) {
    Environment further = {{kNoticeVariable, notice_file_.path()}};
    if (options_.ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) further.emplace_back("OMP_NUM_THREADS", "1");
    // Python fills a buffer before it writes into a pipe: its last words would be lost with it.
    const bool piped = options_.ranks > 1 || !options_.log_directory.empty() || session_;
    if (piped && std::getenv("PYTHONUNBUFFERED") == nullptr) further.emplace_back("PYTHONUNBUFFERED", "1");
    if (options_.nodes && !options_.nodes->interface.empty()) {
      for (const char* const name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
        if (std::getenv(name) == nullptr) further.emplace_back(name, options_.nodes->interface);
      }
    }
    if (resume) {
      further.emplace_back(kResumeVariable, *resume);
      queue_.say(str(kResumeVariable, " is ", *resume));
      if (!committer_ && !FileSystem::real().exists(*resume)) {
        queue_.say(str("warning: ", *resume, " is not there on this machine: --commit-to has to be a folder that all ",
                       "nodes see"));
      }
    }
    if (committer_) tell_notes();
    return further;
  }

  void announce(const JobPlace& place) {
    const bool sets_threads = options_.ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr;
    const std::string threads = sets_threads ? "; OMP_NUM_THREADS is not set: 1 for each rank" : "";
    const std::string address = HostPort{place.master_address, place.master_port}.text();
    if (!session_) {
      if (options_.ranks > 1) queue_.say(str(options_.ranks, " ranks, rendezvous at ", address, threads));
      return;
    }
    const std::string ranks = options_.ranks == 1
                                  ? str("rank ", place.first_rank)
                                  : str("ranks ", place.first_rank, " to ", place.first_rank + options_.ranks - 1);
    const std::string again =
        place.restart_count > 0 ? str("; restart ", place.restart_count, " of ", place.max_restarts) : "";
    queue_.say(str("node ", place.group_rank, " of ", place.group_world_size, ": ", ranks, " of ", place.world_size,
                   ", rendezvous at ", address, again, threads));
  }

  void say_again(const Failure& failure, int restart, int most, int ranks) {
    queue_.say(str(name_of(failure), " ", describe(failure)));
    if (!failure.last_words.empty()) queue_.add(2, str("  its last lines:\n", failure.last_words, "\n"));
    queue_.say(
        str("starting ", ranks == 1 ? "it" : str("all ", ranks, " ranks"), " again (", restart, " of ", most, ")"));
  }

  void tell_notes() {
    for (const std::string& note : committer_->take_notes()) queue_.say(note);
  }

  const JobOptions& options_;
  OutputQueue queue_;
  NoticeFile notice_file_;
  std::optional<RankLogs> logs_;
  int logs_first_ = 0;
  const std::string run_id_;
  Notice notice_;
  std::optional<CommitThread> committer_;
  std::unique_ptr<NodeSession> session_;
};

}  // namespace

int shell_code(const ExitStatus& status) { return status.signalled ? 128 + status.code : status.code; }

int JobEnd::exit_code() const {
  switch (kind) {
    case Kind::kDone:
      return 0;
    case Kind::kInterrupted:
      return skytrain::exit_code(ErrorKind::kInterrupted);
    case Kind::kAborted:
      return skytrain::exit_code(ErrorKind::kAborted);
    case Kind::kFailed:
      break;
  }
  return failure->cause.empty() ? shell_code(failure->end.status) : failure->cause_code;
}

std::string name_of(const Failure& failure) {
  const bool of_node = failure.node >= 0;
  if (failure.rank < 0) return of_node ? str("node ", failure.node, " (", failure.host, ")") : "the job";
  return str("rank ", failure.rank, of_node ? str(" (node ", failure.node, ", ", failure.host, ")") : "");
}

std::string describe(const Failure& failure) {
  if (!failure.cause.empty()) return failure.cause;
  std::string text = failure.end.status.describe();
  if (failure.end.lost) return text + ": the process that watched it was killed";
  if (failure.end.killed) return text + ": it had not ended within " + human_seconds(failure.grace_seconds);
  const bool by_kill = failure.end.status.signalled && failure.end.status.code == SIGKILL;
  if (by_kill && failure.oom_killer_struck) text += ": the kernel's out-of-memory killer struck meanwhile";
  return text;
}

JobEnd run_job(const JobOptions& options) { return Job(options).run(); }

}  // namespace skytrain::launch
