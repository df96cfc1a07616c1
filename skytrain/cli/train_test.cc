// `skytrain train` from the flags to the records, with a worker that trains nothing: this program itself.

#include "skytrain/cli/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "skytrain/base/error.h"
#include "skytrain/base/log.h"
#include "skytrain/base/stop_signal.h"
#include "skytrain/elastic/fake_worker.h"

namespace skytrain::cli {
namespace {

namespace stdfs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class TrainTest : public ::testing::Test {
 protected:
  TrainTest() {
    StopSignal::install();
    StopSignal::reset_for_test();
    stdfs::remove_all(folder_);
    stdfs::create_directories(folder_);
    std::ofstream(folder_ + "/case.yaml") << "version: 1\nname: case\nmodel: {name: mlp, classes: 10}\n"
                                             "data:\n  train: {format: synthetic, samples: 24}\n"
                                             "train: {epochs: 1, batch: 8, optimizer: {name: sgd, lr: 0.1}}\n";
    ::setenv("SKYTRAIN_WORKER", stdfs::canonical("/proc/self/exe").c_str(), 1);
    flags_.recipe = folder_ + "/case.yaml";
    flags_.runs = folder_ + "/runs";
    flags_.json = flags_.quiet = true;
  }
  ~TrainTest() override {
    set_log_file("");
    StopSignal::reset_for_test();
    ::unsetenv("SKYTRAIN_WORKER");
    ::unsetenv(elastic::kFakeWorkerVariable);
    stdfs::remove_all(folder_);
  }

  // The exit code; what went to stdout is in result_ and to stderr in text_.
  int run(const std::string& scenario) {
    ::setenv(elastic::kFakeWorkerVariable, scenario.c_str(), 1);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    int code = -1;
    std::optional<Error> thrown;
    try {
      code = train(flags_);
    } catch (const Error& error) {
      thrown = error;
    }
    const std::string out = ::testing::internal::GetCapturedStdout();
    text_ = ::testing::internal::GetCapturedStderr();
    if (thrown) throw *thrown;
    result_ = out.empty() ? Json() : parse_json(out, "stdout");
    return code;
  }
  std::vector<std::string> run_folders() const {
    std::vector<std::string> out;
    if (!stdfs::exists(folder_ + "/runs/case")) return out;
    for (const auto& entry : stdfs::directory_iterator(folder_ + "/runs/case")) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }
  static Json read_json(const std::string& path) { return parse_json(FileSystem::real().read_file(path), path); }

  std::string folder_ = ::testing::TempDir() + "train_test." + std::to_string(::getpid());
  TrainFlags flags_;
  Json result_;
  std::string text_;
};

TEST_F(TrainTest, LeavesARunWithItsResultAndReport) {
  ASSERT_EQ(run("finished"), 0) << text_;
  ASSERT_EQ(run_folders().size(), 1u);
  const std::string run_dir = run_folders()[0];
  EXPECT_EQ(result_, read_json(run_dir + "/summary.json")) << "the last line is the summary";
  EXPECT_EQ(result_["status"], "complete");
  EXPECT_EQ(result_["run_dir"], run_dir);
  EXPECT_EQ(result_["attempts"], 1);
  EXPECT_GT(result_["time_to_first_step_s"].get<double>(), 0);
  EXPECT_GT(result_["peak_rss_bytes"].get<uint64_t>(), 100'000'000u) << "the worker's and our own";
  EXPECT_TRUE(result_["lock_inherited"].get<bool>());
  EXPECT_TRUE(stdfs::exists(result_["report"].get<std::string>()));
  const Json attempt = read_json(run_dir + "/run.json")["attempts"][0];
  EXPECT_EQ(attempt["status"], "complete");
  EXPECT_EQ(attempt["exit_code"], 0);
  EXPECT_EQ(attempt["steps"], 3) << "of the result, not of the last progress report";
  EXPECT_EQ(attempt["torch_version"], "2.11.0");
}

TEST_F(TrainTest, OfACompleteRunNothingIsDoneAgain) {
  ASSERT_EQ(run("finished"), 0);
  const Json first = result_;
  flags_.quiet = false;
  EXPECT_EQ(run("failed"), 0) << "no worker is started";
  EXPECT_EQ(result_, first);
  EXPECT_THAT(text_, HasSubstr("nothing left to do"));
  EXPECT_THAT(text_, HasSubstr("--resume never"));
  flags_.resume = "never";
  EXPECT_EQ(run("finished"), 0);
  EXPECT_EQ(run_folders().size(), 2u);
}

TEST_F(TrainTest, AFailureIsRecordedAndToldWithItsKind) {
  EXPECT_EQ(run("failed"), 4);
  EXPECT_THAT(text_, HasSubstr("skytrain: train.gz[7]: label 99 is not below 10\n  check the labels"));
  EXPECT_EQ(result_["status"], "failed");
  EXPECT_EQ(result_["error"]["kind"], "data");
  EXPECT_EQ(result_["error"]["exit_code"], 4);
  EXPECT_EQ(result_["steps"], 2);
  const std::string run_dir = run_folders().at(0);
  EXPECT_EQ(read_json(run_dir + "/summary.json"), result_);
  EXPECT_EQ(read_json(run_dir + "/run.json")["attempts"][0]["error"]["what"], "label 99 is not below 10");
  EXPECT_TRUE(stdfs::exists(run_dir + "/report.html"));
}

TEST_F(TrainTest, AfterTheLossOfAWorkerTheSameCommandGoesOn) {
  EXPECT_EQ(run("killed"), 7);
  EXPECT_THAT(text_, HasSubstr("SIGKILL"));
  ASSERT_EQ(run("finished"), 0) << text_;
  EXPECT_EQ(run_folders().size(), 1u);
  EXPECT_TRUE(result_["resume"].get<bool>());
  EXPECT_EQ(result_["attempts"], 2);
}

TEST_F(TrainTest, AnInterruptedRunTellsTheCommandThatGoesOn) {
  flags_.sets = {"train.optimizer={name: sgd, lr: 0.2}"};
  StopSignal::request();
  EXPECT_EQ(run("waits-for-stop"), 75);
  EXPECT_EQ(result_["status"], "interrupted");
  EXPECT_EQ(result_["steps"], 2);
  const std::string rest = " train " + flags_.recipe + " --set 'train.optimizer={name: sgd, lr: 0.2}' --runs " +
                           flags_.runs + " --json --quiet";
  EXPECT_THAT(result_["resume_command"].get<std::string>(), EndsWith(rest));
  EXPECT_THAT(text_, HasSubstr("saved step 2: no sample will be trained again; resume with: ")) << "quiet or not";
  EXPECT_TRUE(stdfs::exists(run_folders().at(0) + "/report.html"));
  StopSignal::reset_for_test();
  EXPECT_EQ(run("finished"), 0);
  EXPECT_TRUE(result_["resume"].get<bool>());
}

TEST_F(TrainTest, ASecondStopRequestEndsItAtOnce) {
  StopSignal::request();
  StopSignal::request();
  EXPECT_EQ(run("ignores-stop"), 130);
  EXPECT_EQ(result_["error"]["kind"], "aborted");
}

TEST_F(TrainTest, ALongerRecipeExtendsTheRunThatIsNamed) {
  ASSERT_EQ(run("finished"), 0);
  flags_.resume = run_folders().at(0);
  flags_.sets = {"train.epochs=2"};
  ASSERT_EQ(run("killed"), 7);
  EXPECT_EQ(read_json(flags_.resume + "/recipe.json")["train"]["epochs"], 2);
  EXPECT_EQ(read_json(flags_.resume + "/summary.json")["status"], "failed") << "it is complete no more";
  flags_.resume = "auto";
  EXPECT_EQ(run("finished"), 0);
  EXPECT_EQ(run_folders().size(), 1u) << "auto finds it by its new recipe";
}

TEST_F(TrainTest, AnotherRecipeDoesNotContinueTheRunThatIsNamed) {
  ASSERT_EQ(run("finished"), 0);
  flags_.resume = run_folders().at(0);
  flags_.sets = {"seed=9"};
  try {
    run("finished");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
  }
}

TEST_F(TrainTest, WithoutAWorkerNoRunIsLeftBehind) {
  ::setenv("SKYTRAIN_WORKER", "/nonexistent/skytrain-worker", 1);
  try {
    run("finished");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  }
  EXPECT_FALSE(stdfs::exists(flags_.runs));
}

TEST_F(TrainTest, AFolderOfRunsThatCanNotBeMadeIsNamed) {
  flags_.runs = flags_.recipe + "/runs";  // below a file
  try {
    run("finished");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), HasSubstr(flags_.runs));
  }
}

// An empty variable in a script must not make the file system's root the folder of runs.
TEST_F(TrainTest, AnEmptyFolderOfRunsIsRefused) {
  flags_.runs = "";
  try {
    run("finished");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

// A path with bytes that are not UTF-8 ended in "a bug in skytrain", a type error of the JSON library.
TEST_F(TrainTest, PathsThatAreNotUtf8AreNamed) {
  const auto refused = [&] {
    try {
      run("finished");
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("caf\\xE9"));
      EXPECT_THAT(error.message(), HasSubstr("is not UTF-8"));
      return error.kind();
    }
    return ErrorKind{0};
  };
  const std::string latin1 = folder_ + "/caf\xe9", good = flags_.runs;
  flags_.runs = latin1;
  EXPECT_EQ(refused(), ErrorKind::kUsage);
  flags_.runs = good;
  flags_.resume = latin1;
  EXPECT_EQ(refused(), ErrorKind::kUsage);
  flags_.resume = "auto";
  const stdfs::path here = stdfs::current_path();
  stdfs::create_directories(latin1);
  stdfs::current_path(latin1);
  EXPECT_EQ(refused(), ErrorKind::kEnvironment);
  stdfs::current_path(here);
  flags_.recipe = latin1 + "/case.yaml";
  EXPECT_EQ(refused(), ErrorKind::kUsage);
  EXPECT_FALSE(stdfs::exists(good));
}

// The last line of progress came twice, as the rate had changed in between.
TEST_F(TrainTest, TheLastLineOfProgressComesOnce) {
  flags_.quiet = false;
  ASSERT_EQ(run("finished"), 0);
  const size_t first = text_.find("24/24  ");
  ASSERT_NE(first, std::string::npos) << text_;
  EXPECT_EQ(text_.find("24/24  ", first + 1), std::string::npos) << text_;
}

TEST_F(TrainTest, ExplainAndDryRunWriteNothing) {
  flags_.explain = true;
  EXPECT_EQ(run("failed"), 0);
  EXPECT_EQ(result_["recipe"]["train"]["batch"], 8);
  flags_.explain = false;
  flags_.dry_run = true;
  EXPECT_EQ(run("failed"), 0);
  EXPECT_EQ(result_["action"], "new");
  EXPECT_FALSE(stdfs::exists(flags_.runs));
}

TEST_F(TrainTest, PeoplesTextGoesToStderrAndNothingToStdout) {
  flags_.json = flags_.quiet = false;
  ASSERT_EQ(run("finished"), 0);
  EXPECT_TRUE(result_.is_null()) << result_;
  EXPECT_THAT(text_, HasSubstr("eval loss 0.2500, top-1 90.00 %"));
  EXPECT_THAT(text_, HasSubstr("  time to first step"));
  EXPECT_EQ(text_.find('\x1b'), std::string::npos) << "no terminal, no control sequences";
}

}  // namespace
}  // namespace skytrain::cli

int main(int argc, char** argv) {
  skytrain::elastic::run_fake_worker_if_asked();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
