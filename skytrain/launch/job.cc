#include "skytrain/launch/job.h"

#include <cstdlib>

#include "skytrain/base/error.h"
#include "skytrain/base/process_tree.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/attempt.h"
#include "skytrain/launch/commit_thread.h"
#include "skytrain/launch/stop_request.h"

namespace skytrain::launch {
namespace {

constexpr double kFlushSeconds = 5;
constexpr char kResumeVariable[] = "SKYTRAIN_RESUME_FROM";

class Job {
 public:
  explicit Job(const JobOptions& options)
      : options_(options),
        notice_file_(FileSystem::real()),
        logs_(FileSystem::real(), options.log_directory, options.ranks, queue_),
        run_id_(new_run_id()) {}

  // A slow reader gets all of it, unless someone wants us gone.
  ~Job() {
    do {
      queue_.flush(kFlushSeconds);
    } while (!queue_.empty() && !stop_request().stop);
  }

  JobEnd run() {
    become_subreaper();
    take_hangup_as_a_notice();
    if (options_.commit) {
      ::unsetenv(kResumeVariable);  // an outer job's
      committer_.emplace(*options_.commit);
      tell_notes();
    }
    JobEnd end;
    while (true) {
      if (const StopRequest request = stop_request(); request.stop) {
        end.kind = request.now ? JobEnd::Kind::kAborted : JobEnd::Kind::kInterrupted;
        break;
      }
      if (!attempt(end)) break;
      ++end.restarts;
    }
    if (committer_) {
      tell_notes();
      end.committed = committer_->committed();
    }
    return end;
  }

 private:
  // true: once more.
  bool attempt(JobEnd& end) {
    JobPlace place;
    place.local_world_size = options_.ranks;
    place.master_port = free_port();
    place.run_id = run_id_;
    place.restart_count = end.restarts;
    place.max_restarts = options_.max_restarts;
    const Environment further = environment();
    if (end.restarts == 0) announce(place);
    bool orderly = true;
    Attempt attempt({options_, place, further, notice_file_, logs_, queue_, notice_,
                     committer_ ? committer_->wake_fd() : -1, [this] { tell_notes(); },
                     [this, &orderly] {
                       orderly = false;
                       if (committer_) committer_->suspend();
                     }});
    attempt.run();
    end.ranks = attempt.ends();
    end.failure = attempt.failure();
    if (attempt.aborted()) {
      end.kind = JobEnd::Kind::kAborted;
    } else if (end.failure) {
      end.kind = JobEnd::Kind::kFailed;
    } else {
      end.kind = notice_.reason.empty() ? JobEnd::Kind::kDone : JobEnd::Kind::kInterrupted;
    }
    const bool again = end.kind == JobEnd::Kind::kFailed && end.restarts < options_.max_restarts &&
                       notice_.reason.empty() && !stop_request().stop;
    if (committer_) {
      committer_->end_of_attempt(orderly && end.kind != JobEnd::Kind::kAborted);
      tell_notes();
    }
    if (again) say_again(*end.failure, end.restarts);
    return again;
  }

  Environment environment() {
    Environment further = {{kNoticeVariable, notice_file_.path()}};
    if (options_.ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) further.emplace_back("OMP_NUM_THREADS", "1");
    // Python fills a buffer before it writes into a pipe: its last words would be lost with it.
    const bool piped = options_.ranks > 1 || !options_.log_directory.empty();
    if (piped && std::getenv("PYTHONUNBUFFERED") == nullptr) further.emplace_back("PYTHONUNBUFFERED", "1");
    if (committer_) {
      if (const auto path = committer_->newest_valid()) {
        further.emplace_back(kResumeVariable, *path);
        queue_.say(str(kResumeVariable, " is ", *path));
      }
      tell_notes();
    }
    return further;
  }

  void announce(const JobPlace& place) {
    if (options_.ranks == 1) return;
    const bool sets_threads = std::getenv("OMP_NUM_THREADS") == nullptr;
    queue_.say(str(options_.ranks, " ranks, rendezvous at ", place.master_address, ":", place.master_port,
                   sets_threads ? "; OMP_NUM_THREADS is not set: 1 for each rank" : ""));
  }

  void say_again(const Failure& failure, int restarts) {
    queue_.say(str("rank ", failure.rank, " ", describe(failure, options_.grace_seconds)));
    if (!failure.last_words.empty()) queue_.add(2, str("  its last lines:\n", failure.last_words, "\n"));
    queue_.say(str("starting ", options_.ranks == 1 ? "it" : str("all ", options_.ranks, " ranks"), " again (",
                   restarts + 1, " of ", options_.max_restarts, ")"));
  }

  void tell_notes() {
    for (const std::string& note : committer_->take_notes()) queue_.say(note);
  }

  const JobOptions& options_;
  OutputQueue queue_;
  NoticeFile notice_file_;
  RankLogs logs_;
  const std::string run_id_;
  Notice notice_;
  std::optional<CommitThread> committer_;
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
  return shell_code(failure->end.status);
}

std::string describe(const Failure& failure, double grace_seconds) {
  std::string text = failure.end.status.describe();
  if (failure.end.lost) return text + ": the process that watched it was killed";
  if (failure.end.killed) return text + ": it had not ended within " + human_seconds(grace_seconds);
  const bool by_kill = failure.end.status.signalled && failure.end.status.code == SIGKILL;
  if (by_kill && failure.oom_killer_struck) text += ": the kernel's out-of-memory killer struck meanwhile";
  return text;
}

JobEnd run_job(const JobOptions& options) { return Job(options).run(); }

}  // namespace skytrain::launch
