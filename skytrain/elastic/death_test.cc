#include "skytrain/elastic/death.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace skytrain::elastic {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Death death_by(int signo) {
  Death death;
  death.status = ExitStatus{true, signo};
  death.had_started = true;
  death.last_step = 12;
  return death;
}

// A run that ran out of memory ended with "exited with status -9" and nobody knew what -9 was.
TEST(Death, BySigkillNamesTheSignalAndTheOutOfMemoryKiller) {
  const Error error = death_error(death_by(SIGKILL));
  EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  EXPECT_EQ(error.problem(), "skytrain-worker was killed by SIGKILL (9) after step 12");
  EXPECT_THAT(error.hint(), HasSubstr("out-of-memory killer may have"));
  EXPECT_THAT(error.hint(), HasSubstr("resumes from the newest checkpoint"));
}

TEST(Death, SaysSoWhenTheOutOfMemoryKillerDidStrike) {
  Death death = death_by(SIGKILL);
  death.oom_killer_struck = true;
  EXPECT_THAT(death_error(death).hint(), HasSubstr("out-of-memory killer struck meanwhile"));
}

TEST(Death, ByAnotherSignalDoesNotBlameMemory) {
  const Error error = death_error(death_by(SIGSEGV));
  EXPECT_THAT(error.problem(), HasSubstr("SIGSEGV"));
  EXPECT_THAT(error.hint(), Not(HasSubstr("memory")));
}

TEST(Death, QuotesTheLastWords) {
  Death death = death_by(SIGABRT);
  death.log_file = "runs/a/log.txt";
  death.last_words = "  terminate called";
  EXPECT_THAT(death_error(death).hint(), HasSubstr("last lines of runs/a/log.txt:\n  terminate called"));
}

TEST(Death, BeforeTheHelloIsTheEnvironmentsFault) {
  Death death;
  death.status = ExitStatus{false, 127};
  const Error error = death_error(death);
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problem(), "skytrain-worker exited with code 127 before it said hello");
  death.status = ExitStatus{true, SIGILL};
  EXPECT_EQ(death_error(death).kind(), ErrorKind::kLostWorkers);
}

TEST(Death, OfAWorkerThatOnlyClosedItsConnection) {
  Death death;
  death.had_started = true;
  EXPECT_EQ(death_error(death).problem(),
            "skytrain-worker closed its connection before its first step, without a word");
}

class LastLines : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string path_ = ::testing::TempDir() + "last_lines." + std::to_string(::getpid());
  ~LastLines() override { std::remove(path_.c_str()); }
};

TEST_F(LastLines, AreTheLastOnesThatAreNotEmpty) {
  write("one\ntwo\n\n  \nthree");
  EXPECT_EQ(last_lines(path_, 0, 2), "  two\n  three");
  EXPECT_EQ(last_lines(path_, 0, 9), "  one\n  two\n  three");
}

TEST_F(LastLines, LeaveOutWhatAnEarlierAttemptWrote) {
  write("earlier\nnow\n");
  EXPECT_EQ(last_lines(path_, 8, 9), "  now");
  EXPECT_EQ(last_lines(path_, 12, 9), "");
}

TEST_F(LastLines, OfALongLogAreFoundAtItsEnd) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "line " + std::to_string(i) + "\n";
  write(text);
  EXPECT_EQ(last_lines(path_, 0, 1), "  line 99999");
}

TEST_F(LastLines, EscapeWhatATerminalWouldObey) {
  write("\x1b[2Jgone\n");
  EXPECT_THAT(last_lines(path_, 0, 1), HasSubstr("\\x1B"));
}

TEST_F(LastLines, OfNoFileAreEmpty) { EXPECT_EQ(last_lines(path_, 0, 5), ""); }

TEST(OomKills, AreReadFromVmstat) {
  EXPECT_EQ(oom_kills("nr_free_pages 5\noom_kill 42\ndrop_pagecache 0\n"), 42u);
  EXPECT_EQ(oom_kills("nr_free_pages 5\n"), 0u);
  EXPECT_EQ(oom_kills(""), 0u);
}

}  // namespace
}  // namespace skytrain::elastic
