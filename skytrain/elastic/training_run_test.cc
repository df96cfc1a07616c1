#include "skytrain/elastic/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "skytrain/base/clock.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/elastic/fake_worker.h"

namespace skytrain::elastic {
namespace {

using ::testing::HasSubstr;

class Observer final : public TrainingObserver {
 public:
  void on_restart(const Error& death, int64_t n, int64_t max_restarts) override {
    restarts.push_back(str_of(n) + "/" + str_of(max_restarts));
    last_death = death.problem();
  }
  void on_progress(const proto::ProgressReport& report) override {
    if (report.step == 2 && stop_at_step_2) std::raise(SIGTERM);
  }
  void on_stopping(std::optional<double> left) override { seconds = left; }
  static std::string str_of(int64_t n) { return std::to_string(n); }

  std::vector<std::string> restarts;
  std::string last_death;
  std::optional<double> seconds;
  bool stop_at_step_2 = false;
};

class TrainingRun : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    StopSignal::reset_for_test();
    options_.program = std::filesystem::canonical("/proc/self/exe").string();
    options_.log_file = folder_ + "/log.txt";
    options_.order = proto::Start{Json::object(), "/runs/a", false, 0, false};
  }
  void TearDown() override {
    StopSignal::reset_for_test();
    ::unsetenv(kFakeWorkerVariable);
    std::system(("rm -r " + folder_).c_str());
  }
  WorkerEnd run(const char* scenario, int64_t max_restarts) {
    ::setenv(kFakeWorkerVariable, scenario, 1);
    return run_training(options_, max_restarts, observer_);
  }
  static std::string make_folder() {
    char name[] = "/tmp/skytrain-training-run-XXXXXX";
    return ::mkdtemp(name);
  }

  std::string folder_ = make_folder();
  WorkerOptions options_;
  Observer observer_;
};

TEST_F(TrainingRun, AWorkerThatDiesIsReplacedWithinTheBudget) {
  const WorkerEnd end = run("killed", 2);
  EXPECT_THAT(observer_.restarts, testing::ElementsAre("1/2", "2/2"));
  const Error& error = std::get<Error>(end.outcome);
  EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  EXPECT_THAT(error.problem(), HasSubstr("SIGKILL (9)"));
  EXPECT_THAT(error.problem(), HasSubstr(", after 2 restarts"));
}

TEST_F(TrainingRun, TheNextOneGoesOn) {
  const WorkerEnd end = run("killed-unless-resumed", 3);
  EXPECT_THAT(observer_.restarts, testing::ElementsAre("1/3"));
  const proto::Finished& finished = std::get<proto::Finished>(end.outcome);
  EXPECT_TRUE(finished.summary["resume"]);
  EXPECT_TRUE(finished.summary["snapshot_inherited"]);
}

TEST_F(TrainingRun, WithoutRestartsThereIsNoSnapshot) {
  EXPECT_FALSE(std::get<proto::Finished>(run("finished", 0).outcome).summary["snapshot_inherited"]);
}

TEST_F(TrainingRun, AWorkerThatDiesBeforeItsFirstStepIsNotReplaced) {
  EXPECT_TRUE(std::holds_alternative<Error>(run("killed-before-first-step", 3).outcome));
  EXPECT_TRUE(observer_.restarts.empty());
}

TEST_F(TrainingRun, AFailureIsNoDeath) {
  EXPECT_EQ(std::get<Error>(run("failed", 3).outcome).kind(), ErrorKind::kData);
  EXPECT_TRUE(observer_.restarts.empty());
}

// One that another attempt had superseded was started again, and superseded that one in turn.
TEST_F(TrainingRun, AReportedLossIsNoDeathEither) {
  EXPECT_EQ(std::get<Error>(run("superseded", 3).outcome).kind(), ErrorKind::kLostWorkers);
  EXPECT_TRUE(observer_.restarts.empty());
}

TEST_F(TrainingRun, TheNextOneGetsWhatAutoDecided) {
  std::get<proto::Start>(options_.order).recipe = {{"decided", false}};
  const WorkerEnd end = run("killed-unless-resumed", 3);
  EXPECT_EQ(std::get<proto::Finished>(end.outcome).summary["recipe"]["decided"], true);
}

// Slurm signals all processes of a job.
TEST_F(TrainingRun, AWorkerThatTheSameSignalKilledBeforeItsHelloIsInterrupted) {
  std::raise(SIGTERM);
  const WorkerEnd end = run("killed-by-term-at-once", 3);
  EXPECT_TRUE(std::holds_alternative<proto::Interrupted>(end.outcome));
}

TEST_F(TrainingRun, AWorkerThatIsNotDoneWhenTheGraceEndsIsKilledBefore) {
  observer_.stop_at_step_2 = true;
  options_.grace_seconds = 1.5;
  const double begin = Clock::real().monotonic_seconds();
  const WorkerEnd end = run("ignores-stop", 3);
  EXPECT_LT(Clock::real().monotonic_seconds() - begin, 1.5) << "a kill from outside would have come by then";
  ASSERT_TRUE(observer_.seconds);
  EXPECT_LT(*observer_.seconds, 1.0);
  const proto::Interrupted& interrupted = std::get<proto::Interrupted>(end.outcome);
  EXPECT_EQ(interrupted.step, 2u);
  EXPECT_EQ(interrupted.saved_step, 2u) << "the newest checkpoint that it told of";
  EXPECT_TRUE(interrupted.summary.is_null());
}

}  // namespace
}  // namespace skytrain::elastic
