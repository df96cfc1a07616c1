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
};

class Attempt {
 public:
  explicit Attempt(AttemptParts parts);
  ~Attempt();

  // Throws Error(kEnvironment) when the command can't be started.
  void run();

  // Afterwards.
  bool aborted() const { return aborted_; }
  const std::optional<Failure>& failure() const { return failure_; }  // not of an end that a notice asked for
  std::vector<RankEnd> ends() const;

 private:
  struct Rank;
  void start();
  bool all_gone() const;
  void wait_for_something();
  void follow_signals();
  void give_notice(int signo);
  void follow_reports(int rank);
  void on_lost(int rank);
  void on_ended(int rank, const RankEnd& end);
  void end_others();
  void pass_deadline();
  void kill_all();
  bool ended_well(const RankEnd& end) const;
  void find_failure();

  AttemptParts parts_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::optional<double> deadline_;
  double ending_since_ = INFINITY;  // when the others of a rank that failed were asked to end
  bool killed_ = false;
  bool aborted_ = false;
  std::optional<Failure> failure_;
  uint64_t oom_kills_before_ = 0;
};

}  // namespace skytrain::launch
