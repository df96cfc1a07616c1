#include "skytrain/base/stop_signal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "skytrain/base/clock.h"

namespace skytrain {
namespace {

bool readable() {
  pollfd p{StopSignal::fd(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

class StopSignalTest : public testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    StopSignal::reset_for_test();
  }
  void TearDown() override {
    StopSignal::reset_for_test();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGUSR1, SIG_DFL);
  }
};

TEST_F(StopSignalTest, CountsBothSignalsAndWakesAPoll) {
  EXPECT_EQ(StopSignal::requests(), 0);
  EXPECT_EQ(StopSignal::last_signal(), 0);
  EXPECT_FALSE(readable());
  std::raise(SIGINT);
  EXPECT_EQ(StopSignal::requests(), 1);
  EXPECT_EQ(StopSignal::last_signal(), SIGINT);
  EXPECT_TRUE(readable());
  // timeout(1) signals the program and then its process group: a run was stopped at once instead of being saved.
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignal::requests(), 1);
  Clock::real().sleep_seconds(2e-3 * StopSignal::kSameRequestMs);
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignal::requests(), 2);
  EXPECT_EQ(StopSignal::last_signal(), SIGTERM);
}

// Slurm's --signal=USR1@60, and then its SIGTERM.
TEST_F(StopSignalTest, ANoticeIsOneRequestAndTheTermAfterItIsTheSame) {
  std::raise(SIGUSR1);
  EXPECT_EQ(StopSignal::requests(), 1);
  EXPECT_TRUE(readable());
  const std::optional<double> announced = StopSignal::announced();
  ASSERT_TRUE(announced);
  EXPECT_NEAR(*announced, Clock::real().monotonic_seconds(), 0.5);
  Clock::real().sleep_seconds(2e-3 * StopSignal::kSameRequestMs);
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignal::requests(), 1);
  EXPECT_EQ(StopSignal::announced(), announced) << "the first one counts";
  Clock::real().sleep_seconds(2e-3 * StopSignal::kSameRequestMs);
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignal::requests(), 2);
}

TEST_F(StopSignalTest, CtrlCAnnouncesNoKill) {
  std::raise(SIGINT);
  EXPECT_FALSE(StopSignal::announced());
}

TEST_F(StopSignalTest, GivesOneByteARequest) {
  StopSignal::request();
  StopSignal::request();
  EXPECT_EQ(StopSignal::requests(), 2);
  EXPECT_EQ(StopSignal::last_signal(), 0) << "a message is no signal";
  char bytes[8];
  EXPECT_EQ(::read(StopSignal::fd(), bytes, sizeof bytes), 2);
  EXPECT_FALSE(readable());
}

TEST_F(StopSignalTest, SurvivesMoreRequestsThanThePipeHolds) {
  for (int i = 0; i < 200000; ++i) StopSignal::request();
  EXPECT_EQ(StopSignal::requests(), 200000);
  EXPECT_TRUE(readable());
}

TEST_F(StopSignalTest, ABrokenPipeIsAnErrorNotADeath) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  ::close(fds[0]);
  EXPECT_EQ(::write(fds[1], "x", 1), -1);
  ::close(fds[1]);
}

TEST_F(StopSignalTest, InstallingAgainKeepsTheDescriptor) {
  const int fd = StopSignal::fd();
  StopSignal::install();
  EXPECT_EQ(StopSignal::fd(), fd);
}

}  // namespace
}  // namespace skytrain
