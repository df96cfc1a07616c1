// skytrain/launch/attempt.h
//
// All ranks of a job from their start to their end, once. Belongs to one thread.

#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/launch/head_link.h"
#include "skytrain/launch/job.h"
#include "skytrain/launch/notice_file.h"
#include "skytrain/launch/output_queue.h"
#include "skytrain/launch/rank_environment.h"
#include "skytrain/launch/rank_output.h"
#include "skytrain/launch/rank_process.h"

namespace skytrain::launch {

// Of the whole job: what signals have asked for, and what was passed on.
struct Notice {
  std::string reason;              // "SIGTERM", …; "": none
  int signo = 0;                   // that ranks get
  std::optional<double> deadline;  // monotonic seconds
  bool from_elsewhere = false;     // another node of the job had it first
  bool own = false;                // this machine has had one too
};

struct AttemptParts {
  const JobOptions& options;
  JobPlace place;
  Environment environment;  // beside that of the place
  NoticeFile& notice_file;
  RankLogs& logs;
  OutputQueue& queue;
  Notice& notice;
  // Text of other threads, which wake the loop through wake_fd.
  int wake_fd = -1;
  std::function<void()> on_wake;
  std::function<void()> on_disorder;  // a rank has ended otherwise than with 0 or 75
  HeadLink* link = nullptr;           // to the head of a job on several machines
  int number = 0;                     // of the attempt, for the head
};

class Attempt {
 public:
  explicit Attempt(AttemptParts parts);
  ~Attempt();

  // Throws Error(kEnvironment) when the command can't be started.
  void run();

  // Afterwards.
  bool aborted() const { return aborted_; }
  // Of a rank of this machine; not an end that a notice asked for.
  const std::optional<Failure>& failure() const { return failure_; }
  bool orderly() const { return orderly_; }  // each rank has ended with 0 or 75
  std::vector<RankEnd> ends() const;

 private:
  struct Rank;
  void start();
  bool all_gone() const;
  void wait_for_something();
  void follow_signals();
  void follow_head();
  void on_remote_notice(const message::NoticeGiven& notice);
  // seconds: that are left until SIGKILL; none: nobody has announced it.
  void give_notice(const std::string& reason, std::optional<double> seconds);
  void shorten_notice(double seconds);
  void tell_ranks_of_notice();
  void follow_reports(int rank);
  void on_lost(int rank);
  void on_ended(int rank, const RankEnd& end);
  void end_others(const Failure& failure);
  void tell_failure(const Failure& failure);
  void pass_deadline();
  void kill_all();
  bool ended_well(const RankEnd& end) const;
  void find_failure();

  AttemptParts parts_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::optional<double> deadline_;
  double ending_since_ = INFINITY;  // when the others of a rank that failed were asked to end
  bool killed_ = false;
  bool orderly_ = true;
  bool aborted_ = false;
  bool head_lost_ = false;
  std::optional<Failure> failure_;
  uint64_t oom_kills_before_ = 0;
};

}  // namespace skytrain::launch
