// The worker of these tests is this program itself: see fake_worker.h.

#include "skytrain/elastic/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "skytrain/base/stop_signal.h"
#include "skytrain/elastic/fake_worker.h"

namespace skytrain::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recorder : public WorkerObserver {
 public:
  void on_hello(const proto::Hello& m) override { heard.push_back("hello " + m.torch_version); }
  void on_started(const proto::Started&) override { heard.push_back("started"); }
  void on_progress(const proto::ProgressReport& m) override {
    heard.push_back("step " + std::to_string(m.step));
    for (int i = 0; m.step == 2 && i < stop_requests_at_step_2; ++i) StopSignal::request();
  }
  void on_note(const proto::Note& m) override { heard.push_back(m.level + ": " + m.line); }
  void on_checkpoint(const proto::CheckpointDone&) override { heard.push_back("checkpoint"); }
  void on_evaluation(const proto::EvaluationDone&) override { heard.push_back("evaluation"); }
  void on_stopping(std::optional<double>) override {
    heard.push_back("stopping");
    if (stop_again_when_stopping) StopSignal::request();
  }

  std::vector<std::string> heard;
  int stop_requests_at_step_2 = 0;
  bool stop_again_when_stopping = false;
};

class WorkerProcess : public ::testing::Test {
 protected:
  WorkerProcess() {
    StopSignal::install();
    StopSignal::reset_for_test();
    options_.program = std::filesystem::canonical("/proc/self/exe").string();
    options_.log_file = ::testing::TempDir() + "worker_process." + std::to_string(::getpid()) + ".log";
    options_.order = proto::Start{.recipe = Json::object(), .run_directory = "/runs/a"};
    options_.handshake_seconds = 30;
  }
  ~WorkerProcess() override {
    ::unsetenv(kFakeWorkerVariable);
    StopSignal::reset_for_test();
    std::filesystem::remove(options_.log_file);
  }

  WorkerEnd run(const std::string& scenario) {
    ::setenv(kFakeWorkerVariable, scenario.c_str(), 1);
    return run_worker(options_, recorder_);
  }
  Error run_to_error(const std::string& scenario) {
    const WorkerEnd end = run(scenario);
    if (const auto* error = std::get_if<Error>(&end.outcome)) return *error;
    ADD_FAILURE() << scenario << " did not end with an error";
    return Error(ErrorKind::kInternal, "", "");
  }

  WorkerOptions options_;
  Recorder recorder_;
};

TEST_F(WorkerProcess, PassesOnWhatTheWorkerReportsAndItsResult) {
  const WorkerEnd end = run("finished");
  ASSERT_TRUE(std::holds_alternative<proto::Finished>(end.outcome));
  EXPECT_EQ(std::get<proto::Finished>(end.outcome).summary["steps"], 3);
  EXPECT_THAT(recorder_.heard,
              ElementsAre("hello 2.11.0", "started", "step 1", "step 2", "checkpoint", "info: a note", "evaluation"));
  EXPECT_GT(end.peak_rss_bytes, 0u);
}

TEST_F(WorkerProcess, AppendsTheWorkersOutputToTheLog) {
  std::ofstream(options_.log_file) << "from an earlier attempt\n";
  run("finished");
  std::ifstream log(options_.log_file);
  std::string first, second;
  std::getline(log, first);
  std::getline(log, second);
  EXPECT_EQ(first, "from an earlier attempt");
  EXPECT_EQ(second, "training in /runs/a");
}

TEST_F(WorkerProcess, HandsTheLockToTheWorkerOnlyWhenThereIsOne) {
  EXPECT_FALSE(std::get<proto::Finished>(run("finished").outcome).summary["lock_inherited"]);
  const Fd lock(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  options_.fds = {{lock.get(), proto::kLockFd}};
  EXPECT_TRUE(std::get<proto::Finished>(run("finished").outcome).summary["lock_inherited"]);
}

TEST_F(WorkerProcess, AFailureThatTheWorkerReportsKeepsItsKindPlaceAndHint) {
  const Error error = run_to_error("failed");
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.where(), "train.gz[7]");
  EXPECT_EQ(error.problem(), "label 99 is not below 10");
  EXPECT_EQ(error.hint(), "check the labels");
}

TEST_F(WorkerProcess, ADeathBySignalIsTheLossOfAWorkerAndQuotesItsLastWords) {
  const Error error = run_to_error("killed");
  EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  EXPECT_EQ(error.problem(), "skytrain-worker was killed by SIGKILL (9) after step 2");
  EXPECT_THAT(error.hint(), HasSubstr("out-of-memory"));
  EXPECT_THAT(error.hint(), HasSubstr("  reading sample 17\n  reading sample 18"));
  EXPECT_THAT(recorder_.heard, ::testing::Contains("info: a note")) << "what it said before is not lost";
}

TEST_F(WorkerProcess, ASegmentationFaultIsNamed) {
  EXPECT_THAT(run_to_error("segfault").problem(), HasSubstr("SIGSEGV"));
}

TEST_F(WorkerProcess, ADeathBeforeTheFirstStepSaysSo) {
  EXPECT_THAT(run_to_error("killed-before-first-step").problem(), HasSubstr("before its first step"));
}

TEST_F(WorkerProcess, AnExitWithoutAWordIsTheLossOfAWorker) {
  const Error error = run_to_error("leaves-without-a-word");
  EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  EXPECT_EQ(error.problem(), "skytrain-worker exited with code 0 after step 2, without a word");
}

TEST_F(WorkerProcess, AWorkerThatClosesItsConnectionAndStaysIsKilled) {
  options_.exit_seconds = 0.05;
  const Error error = run_to_error("closes-and-stays");
  EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  EXPECT_EQ(error.problem(), "skytrain-worker closed its connection after step 2, without a word");
}

TEST_F(WorkerProcess, AWorkerThatCanNotLoadItsLibrariesIsTheEnvironmentsFault) {
  const Error error = run_to_error("exit-at-once");
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problem(), "skytrain-worker exited with code 127 before it said hello");
  EXPECT_THAT(error.hint(), HasSubstr("libtorch_cpu.so: cannot open shared object file"));
}

TEST_F(WorkerProcess, AWorkerThatNeverSaysHelloIsKilledAfterTheTimeOut) {
  options_.handshake_seconds = 0.1;
  const Error error = run_to_error("silent");
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problem(), "skytrain-worker did not answer within 100 ms");
}

TEST_F(WorkerProcess, AWorkerOfAnotherBuildIsRefusedByName) {
  const Error error = run_to_error("other-protocol");
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problem(), "skytrain-worker 9.9.9 speaks protocol 4, this skytrain speaks 3");
}

TEST_F(WorkerProcess, WhatIsNoMessageIsRefused) {
  const Error error = run_to_error("garbage");
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_THAT(error.problem(), HasSubstr("a frame announces"));
}

TEST_F(WorkerProcess, AMessageBeforeTheHelloIsRefused) {
  EXPECT_EQ(run_to_error("no-hello").problem(), "sent progress before its hello");
}

TEST_F(WorkerProcess, AMissingProgramIsNamed) {
  options_.program = "/nonexistent/skytrain-worker";
  try {
    run("finished");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), HasSubstr("/nonexistent/skytrain-worker"));
  }
}

TEST_F(WorkerProcess, TheFirstStopRequestLetsTheWorkerSave) {
  recorder_.stop_requests_at_step_2 = 1;
  const WorkerEnd end = run("waits-for-stop");
  ASSERT_TRUE(std::holds_alternative<proto::Interrupted>(end.outcome));
  EXPECT_EQ(std::get<proto::Interrupted>(end.outcome).step, 2u);
  EXPECT_EQ(std::count(recorder_.heard.begin(), recorder_.heard.end(), "stopping"), 1);
}

TEST_F(WorkerProcess, AStopRequestFromBeforeItsStartReachesTheWorkerToo) {
  StopSignal::request();
  EXPECT_TRUE(std::holds_alternative<proto::Interrupted>(run("waits-for-stop").outcome));
}

TEST_F(WorkerProcess, TheSecondStopRequestEndsTheWorkerAtOnce) {
  recorder_.stop_requests_at_step_2 = 1;
  recorder_.stop_again_when_stopping = true;
  const Error error = run_to_error("ignores-stop");
  EXPECT_EQ(error.kind(), ErrorKind::kAborted);
  EXPECT_EQ(error.problem(), "stopped at once after step 2");
}

TEST_F(WorkerProcess, AResultStandsThoughTheWorkerCrashesAtItsEnd) {
  EXPECT_TRUE(std::holds_alternative<proto::Finished>(run("crashes-at-its-end").outcome));
  EXPECT_EQ(recorder_.heard.back(), "warning: skytrain-worker was killed by SIGKILL (9) after its last word");
}

TEST_F(WorkerProcess, AResultStandsThoughTheWorkerHangsAtItsEnd) {
  options_.exit_seconds = 0.05;
  EXPECT_TRUE(std::holds_alternative<proto::Finished>(run("hangs-at-its-end").outcome));
}

}  // namespace
}  // namespace skytrain::elastic

int main(int argc, char** argv) {
  skytrain::elastic::run_fake_worker_if_asked();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
