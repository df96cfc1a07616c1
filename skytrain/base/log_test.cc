#include "skytrain/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string pattern = testing::TempDir() + "skytrain-test-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/log.txt";
  }
  ~LogTest() override {
    set_log_file("");
    set_log_level(LogLevel::kInfo);
    set_log_to_stderr(true);
    std::filesystem::remove_all(folder_);
  }
  std::string file() { return FileSystem::real().read_file(path_); }
  std::string folder_, path_;
};

TEST_F(LogTest, NamesLevelsOnStderrAndDropsDebug) {
  testing::internal::CaptureStderr();
  log_debug("details");
  log_info("hello {} %s");
  log_warning("careful");
  log_error("broken");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hello {} %s\nwarning: careful\nerror: broken\n");
  set_log_level(LogLevel::kDebug);
  testing::internal::CaptureStderr();
  log_debug("details");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "debug: details\n");
  set_log_level(LogLevel::kError);
  testing::internal::CaptureStderr();
  log_warning("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LogTest, TheFileGetsEverythingWithTimeAndLevelAtOnce) {
  set_log_file(path_);
  set_log_to_stderr(false);
  testing::internal::CaptureStderr();
  log_debug("details");
  log_warning("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::string time = "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9]+Z ";
  EXPECT_THAT(file(), MatchesRegex(time + "debug: details\n" + time + "warning: careful\n"));
}

TEST_F(LogTest, AppendsToTheFileOfAnEarlierAttempt) {
  set_log_to_stderr(false);
  set_log_file(path_);
  log_info("first");
  set_log_file("");
  log_info("nowhere");
  set_log_file(path_);
  log_info("second");
  EXPECT_THAT(file(), HasSubstr("first"));
  EXPECT_THAT(file(), HasSubstr("second"));
  EXPECT_THAT(file(), Not(HasSubstr("nowhere")));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsNamed) {
  try {
    set_log_file("/proc/no/log.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_EQ(error.where(), "/proc/no/log.txt");
  }
  log_info("still works");
}

// A run on a full disk goes on; its log says once that lines are missing.
TEST_F(LogTest, AFullDiskIsReportedOnceAndEndsNothing) {
  set_log_file("/dev/full");
  set_log_to_stderr(false);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) log_info("line");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("/dev/full: log lines are lost"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  set_log_file(path_);
  set_log_to_stderr(false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) log_info(str("<thread ", t, ">"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = file();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 800);
  EXPECT_EQ(std::count(text.begin(), text.end(), '<'), 800);
}

}  // namespace
}  // namespace skytrain
