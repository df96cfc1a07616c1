#include "skytrain/base/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "skytrain/base/console.h"
#include "skytrain/base/process.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Stands in for stderr: a pipe whose reading end never blocks.
class ProgressTest : public testing::Test {
 protected:
  ProgressTest() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = Fd(fds[0]);
    write_ = Fd(fds[1]);
  }

  Progress::Options options(bool terminal, int columns = 120) {
    Progress::Options o;
    o.fd = write_.get();
    o.is_terminal = terminal;
    o.columns = columns;
    o.clock = &clock_;
    return o;
  }

  std::string written() {
    std::string out;
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(read_.get(), buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(n));
    return out;
  }

  // What was drawn since the last call: texts between erasures and newlines.
  std::vector<std::string> drawn() {
    std::string text = written();
    std::vector<std::string> out;
    std::string current;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool erase = text.compare(i, 4, "\r\x1b[K") == 0;
      if (erase || text[i] == '\n') {
        if (!current.empty()) out.push_back(current);
        current.clear();
        if (erase) i += 3;
      } else {
        current += text[i];
      }
    }
    if (!current.empty()) out.push_back(current);
    return out;
  }

  FakeClock clock_;
  Fd read_, write_;
};

TEST_F(ProgressTest, ShowsBarRateAndEtaOnATerminal) {
  Progress progress(options(/*terminal=*/true));
  progress.start("mnist-simplecnn", 0, 60000);
  written();
  clock_.advance(1);
  progress.update(15020, "epoch 1/1 loss 0.132");
  EXPECT_THAT(drawn(),
              ElementsAre("mnist-simplecnn  25%|███████▌                      | 15,020/60,000  15,020 samples/s  "
                          "ETA 00:03  epoch 1/1 loss 0.132"));
  clock_.advance(1);
  progress.update(30040, "epoch 1/1");
  EXPECT_THAT(drawn(),
              ElementsAre("mnist-simplecnn  50%|███████████████               | 30,040/60,000  15,020 samples/s  "
                          "ETA 00:02  epoch 1/1"));
  clock_.advance(2);
  progress.update(60000, "epoch 1/1");
  progress.finish();
  const auto last = drawn();
  EXPECT_THAT(last.back(), HasSubstr("100%|██████████████████████████████| 60,000/60,000"));
  EXPECT_THAT(last.back(), HasSubstr("ETA 00:00"));
}

TEST_F(ProgressTest, RedrawsNoOftenerThanAsked) {
  Progress progress(options(true));
  progress.start("x", 0, 1000);
  written();
  for (int i = 1; i <= 1000; ++i) {  // one second
    clock_.advance(0.001);
    progress.update(static_cast<uint64_t>(i), "");
  }
  const size_t count = drawn().size();
  EXPECT_GE(count, 9u);
  EXPECT_LE(count, 10u);
}

TEST_F(ProgressTest, IsNeverWiderThanTheTerminal) {
  for (int columns = 1; columns <= 200; ++columns) {
    for (const bool unicode : {true, false}) {
      Progress::Options o = options(true, columns);
      o.unicode = unicode;
      Progress progress(o);
      progress.start("a-run-with-a-long-name-größe-学習", 0, 123456789);
      clock_.advance(1);
      progress.update(45678901, "epoch 12/90  loss 0.132  lr 0.001  学習率 and more text than fits");
      progress.finish();
      for (const std::string& line : drawn()) {
        // One column stays free, for terminals that wrap when the last one is filled.
        EXPECT_LE(display_width(line), static_cast<size_t>(std::max(1, columns - 1))) << columns << ": " << line;
      }
    }
  }
}

TEST_F(ProgressTest, NarrowTerminalsKeepTheNumbers) {
  Progress progress(options(true, 60));
  progress.start("mnist-simplecnn", 0, 60000);
  written();
  clock_.advance(1);
  progress.update(15020, "loss 0.132");
  const auto lines = drawn();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("25%"));
  EXPECT_THAT(lines[0], HasSubstr("15,020/60,000"));
}

TEST_F(ProgressTest, FollowsAResizeOfTheTerminal) {
  const Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master);
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  const Fd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(slave);
  const auto resize = [&](unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    ASSERT_EQ(::ioctl(master.get(), TIOCSWINSZ, &size), 0);
  };
  const auto shown = [&] {
    std::string out;
    char buffer[4096];
    pollfd ready{master.get(), POLLIN, 0};
    while (::poll(&ready, 1, 50) == 1) {
      const ssize_t n = ::read(master.get(), buffer, sizeof buffer);
      if (n <= 0) break;
      out.append(buffer, static_cast<size_t>(n));
    }
    return out;
  };
  Progress::Options o = options(true, 0);
  o.fd = slave.get();
  resize(100);
  Progress progress(o);
  progress.start("run", 0, 100);
  const size_t wide = display_width(shown());
  resize(40);
  clock_.advance(1);
  progress.update(50, "some detail that is long enough to fill any terminal of a hundred columns and then some more");
  const size_t narrow = display_width(shown());
  EXPECT_LE(narrow, 40u + 3);  // and the sequence that erases
  EXPECT_GT(wide, 20u);
}

TEST_F(ProgressTest, ElsewhereWritesCalmLines) {
  Progress progress(options(/*terminal=*/false));
  progress.start("mnist", 0, 1000);
  EXPECT_THAT(drawn(), IsEmpty());
  std::vector<std::string> lines;
  for (int i = 1; i <= 1000; ++i) {  // one second in all: lines at each tenth only
    clock_.advance(0.001);
    progress.update(static_cast<uint64_t>(i), "loss 0.5");
  }
  progress.finish();
  const std::string text = written();
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, StartsWith("mnist  10%  100/1,000  1,000 samples/s  ETA 00:01  loss 0.5\n"));
  EXPECT_THAT(text, EndsWith("mnist  100%  1,000/1,000  1,000 samples/s  ETA 00:00  loss 0.5\n"));
}

TEST_F(ProgressTest, ElsewhereSpeaksAtLeastEveryFewSecondsOfALongRun) {
  Progress progress(options(false));
  progress.start("long", 0, 1'000'000);
  for (int i = 1; i <= 60; ++i) {
    clock_.advance(1);
    progress.update(static_cast<uint64_t>(i), "");
  }
  EXPECT_EQ(drawn().size(), 6u);
}

TEST_F(ProgressTest, RateIsThatOfTheLastSecondsNotOfTheWholeRun) {
  Progress progress(options(false));
  progress.start("x", 0, 100000);
  for (int i = 0; i < 60; ++i) {  // slow for a minute (10/s), then fast (1000/s)
    clock_.advance(1);
    progress.update(static_cast<uint64_t>(10 * (i + 1)), "");
  }
  written();
  for (int i = 0; i < 20; ++i) {
    clock_.advance(1);
    progress.update(static_cast<uint64_t>(600 + 1000 * (i + 1)), "");
  }
  EXPECT_THAT(drawn().back(), HasSubstr("  1,000 samples/s"));
}

TEST_F(ProgressTest, StartsFromWhereAResumedRunIs) {
  Progress progress(options(false));
  progress.start("x", 90000, 100000);
  clock_.advance(10);
  progress.update(91000, "");
  EXPECT_THAT(drawn(), ElementsAre("x  91%  91,000/100,000  100 samples/s  ETA 01:30"));
}

TEST_F(ProgressTest, GoesBackWhenTheRunDoes) {  // steps are done again after a lost worker
  Progress progress(options(false));
  progress.start("x", 0, 1000);
  clock_.advance(10);
  progress.update(500, "");
  clock_.advance(10);
  progress.update(400, "");
  clock_.advance(10);
  progress.update(500, "");
  EXPECT_THAT(drawn().back(), HasSubstr("500/1,000  10 samples/s"));
}

TEST_F(ProgressTest, KnowsNoTotal) {
  Progress progress(options(true));
  progress.start("reading", 0, 0);
  clock_.advance(1);
  progress.update(1500, "shard 3");
  EXPECT_THAT(drawn().back(), StartsWith("reading 1,500 samples  1,500 samples/s  shard 3"));
}

TEST_F(ProgressTest, NotesAndLinesOfOthersDoNotTearTheBar) {
  Progress progress(options(true));
  progress.start("x", 0, 10);
  written();
  progress.note("saved step 5");
  const std::string text = written();
  EXPECT_THAT(text, StartsWith("\r\x1b[Ksaved step 5\n"));
  EXPECT_THAT(text, HasSubstr("0/10")) << "the bar is drawn again below";
  console::print_line(write_.get(), "warning: from the log");
  EXPECT_THAT(written(), StartsWith("\r\x1b[Kwarning: from the log\n"));
  progress.finish();
  EXPECT_THAT(written(), EndsWith("\n"));
  console::print_line(write_.get(), "after");
  EXPECT_EQ(written(), "after\n");
}

TEST_F(ProgressTest, LeavesTheTerminalOnANewLineWhenItIsDestroyed) {
  {
    Progress progress(options(true));
    progress.start("x", 0, 10);
  }
  EXPECT_THAT(written(), EndsWith("\n"));
}

TEST_F(ProgressTest, SurvivesATerminalThatHasGone) {
  read_.reset();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Progress progress(options(true));
  progress.start("x", 0, 10);
  clock_.advance(1);
  progress.update(5, "");
  progress.finish();
  std::signal(SIGPIPE, before);
}

TEST_F(ProgressTest, LabelsCannotMoveTheCursor) {
  Progress progress(options(false));
  progress.start("evil\x1b[2J", 0, 10);
  clock_.advance(10);
  progress.update(1, "also\nevil");
  EXPECT_THAT(drawn(), ElementsAre(HasSubstr("also\\x0Aevil")));
}

TEST(DetectTerminal, TakesItsWidthFromColumnsAndItsCharactersFromTheLocale) {
  ::setenv("COLUMNS", "33", 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  EXPECT_EQ(detect_terminal().columns, 33);
  EXPECT_TRUE(detect_terminal().unicode);
  ::setenv("COLUMNS", "wide", 1);
  ::setenv("LC_ALL", "C", 1);
  EXPECT_EQ(detect_terminal().columns, 0);
  EXPECT_FALSE(detect_terminal().unicode);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(detect_terminal().is_terminal);
  ::unsetenv("COLUMNS");
  ::unsetenv("LC_ALL");
  ::unsetenv("TERM");
}

}  // namespace
}  // namespace skytrain
