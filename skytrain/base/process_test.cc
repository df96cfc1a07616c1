#include "skytrain/base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/text.h"

namespace skytrain {
namespace {

using testing::HasSubstr;

ChildProcess::Options shell(const std::string& script) {
  ChildProcess::Options options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

// Reads until the other end is closed.
std::string drain(int fd) {
  std::string out;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(n));
  return out;
}

// What `script` writes to its descriptor 3.
std::string output_of(ChildProcess::Options options) {
  auto [ours, theirs] = stream_socket_pair();
  options.fds.emplace_back(theirs.get(), 3);
  ChildProcess child = ChildProcess::spawn(options);
  theirs.reset();
  std::string out = drain(ours.get());
  child.wait();
  return out;
}

TEST(ChildProcess, ReportsItsExitCode) {
  ChildProcess child = ChildProcess::spawn(shell("exit 3"));
  EXPECT_GT(child.pid(), 0);
  const auto status = child.wait();
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->signalled);
  EXPECT_EQ(status->code, 3);
  EXPECT_FALSE(status->ok());
  EXPECT_EQ(status->describe(), "exited with code 3");
  EXPECT_EQ(child.wait()->code, 3) << "may be asked again";
  EXPECT_GT(child.peak_rss_bytes(), 100u * 1024);
}

TEST(ChildProcess, ReportsTheSignalThatKilledIt) {
  ChildProcess child = ChildProcess::spawn(shell("kill -KILL $$"));
  const auto status = child.wait();
  EXPECT_TRUE(status->signalled);
  EXPECT_EQ(status->code, SIGKILL);
  EXPECT_EQ(status->describe(), "was killed by SIGKILL (9)");
}

TEST(ChildProcess, MissingProgramIsAnErrorThatNamesIt) {
  ChildProcess::Options options;
  options.argv = {"/no/such/program"};
  try {
    ChildProcess::spawn(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_EQ(error.where(), "/no/such/program");
    EXPECT_EQ(error.problem(), "cannot start: No such file or directory");
  }
  options.argv = {"/etc/passwd"};
  EXPECT_THROW(ChildProcess::spawn(options), Error) << "not executable";
}

TEST(ChildProcess, WaitsNoLongerThanAskedAndPollsThroughThePidfd) {
  auto [ours, theirs] = stream_socket_pair();
  ChildProcess::Options options = shell("read line <&3");
  options.fds = {{theirs.get(), 3}};
  ChildProcess child = ChildProcess::spawn(options);
  theirs.reset();
  EXPECT_FALSE(child.wait(0));
  EXPECT_FALSE(child.wait(0.02));
  pollfd poll_fd{child.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll_fd, 1, 0), 0);
  ASSERT_EQ(::write(ours.get(), "go\n", 3), 3);
  EXPECT_EQ(::poll(&poll_fd, 1, 10000), 1);
  EXPECT_TRUE(child.wait(0)->ok());
}

TEST(ChildProcess, TakesSignalsAndForgivesThoseAfterItsEnd) {
  ChildProcess child = ChildProcess::spawn(shell("sleep 100"));
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(10)->describe(), "was killed by SIGTERM (15)");
  child.signal(SIGTERM);
}

TEST(ChildProcess, GetsItsDescriptorsAtTheirNumbersAndNoOthers) {
  const Fd stray(::open("/dev/null", O_RDONLY));  // not close-on-exec
  auto [ours, theirs] = stream_socket_pair();
  ChildProcess::Options options;
  options.argv = {"/bin/cat"};
  options.fds = {{theirs.get(), 0}, {theirs.get(), 1}, {theirs.get(), 7}};
  ChildProcess child = ChildProcess::spawn(options);
  theirs.reset();
  // Once cat has echoed, its start is over and it waits for more.
  ASSERT_EQ(::write(ours.get(), "x", 1), 1);
  char echo = 0;
  ASSERT_EQ(::read(ours.get(), &echo, 1), 1);
  EXPECT_EQ(echo, 'x');
  EXPECT_THAT(FileSystem::real().list(str("/proc/", child.pid(), "/fd")), testing::ElementsAre("0", "1", "2", "7"));
  ours.reset();
  EXPECT_TRUE(child.wait()->ok());
}

TEST(ChildProcess, SwappedDescriptorsArriveSwapped) {
  int first[2], second[2];
  ASSERT_EQ(::pipe2(first, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(second, O_CLOEXEC), 0);
  const Fd first_read(first[0]), second_read(second[0]);
  Fd first_write(first[1]), second_write(second[1]);
  const int a = first_write.get(), b = second_write.get();
  ChildProcess::Options options = shell(str("echo at_a >/proc/$$/fd/", a, "; echo at_b >/proc/$$/fd/", b));
  options.fds = {{a, b}, {b, a}};
  ChildProcess child = ChildProcess::spawn(options);
  first_write.reset();
  second_write.reset();
  EXPECT_EQ(drain(first_read.get()), "at_b\n");
  EXPECT_EQ(drain(second_read.get()), "at_a\n");
  EXPECT_TRUE(child.wait()->ok());
}

TEST(ChildProcess, GetsOurEnvironmentWithChanges) {
  ::setenv("SKYTRAIN_TEST_KEPT", "kept", 1);
  ::setenv("SKYTRAIN_TEST_CHANGED", "before", 1);
  ChildProcess::Options options =
      shell("echo $SKYTRAIN_TEST_KEPT $SKYTRAIN_TEST_CHANGED $SKYTRAIN_TEST_NEW >&3; env | grep -c TEST_CHANGED >&3");
  options.extra_env = {{"SKYTRAIN_TEST_CHANGED", "after"}, {"SKYTRAIN_TEST_NEW", "a=b"}};
  EXPECT_EQ(output_of(options), "kept after a=b\n1\n");
}

TEST(ChildProcess, WritesItsOutputToAFile) {
  std::string pattern = testing::TempDir() + "skytrain-test-XXXXXX";
  const Fd file(::mkstemp(pattern.data()));
  for (int i = 0; i < 2; ++i) {
    ChildProcess::Options options = shell("echo out; echo err >&2");
    options.stdout_stderr_file = pattern;
    EXPECT_TRUE(ChildProcess::spawn(options).wait()->ok());
  }
  EXPECT_EQ(FileSystem::real().read_file(pattern), "out\nerr\nout\nerr\n") << "appends";
  ::unlink(pattern.c_str());
  ChildProcess::Options options = shell("true");
  options.stdout_stderr_file = "/no/such/folder/log";
  EXPECT_THROW(ChildProcess::spawn(options), Error);
}

TEST(ChildProcess, LeadsItsOwnGroupUnlessToldOtherwise) {
  ChildProcess::Options options = shell("cut -d' ' -f5 /proc/$$/stat >&3");
  EXPECT_NE(output_of(options), str(::getpgrp(), "\n"));
  options.new_process_group = false;
  EXPECT_EQ(output_of(options), str(::getpgrp(), "\n"));
}

TEST(ChildProcess, InABackgroundGroupReadsNothingRatherThanTheTerminal) {
  EXPECT_EQ(output_of(shell("readlink /proc/$$/fd/0 >&3")), "/dev/null\n");
}

TEST(ChildProcess, StartsWithDefaultSignals) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old);
  const std::string out = output_of(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status >&3"));
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::signal(SIGPIPE, before);
  EXPECT_THAT(out, HasSubstr("SigBlk:\t0000000000000000"));
  const size_t at = out.find("SigIgn:\t") + 8;
  EXPECT_EQ(std::stoull(out.substr(at, 16), nullptr, 16) >> (SIGPIPE - 1) & 1, 0u) << out;
}

TEST(ChildProcess, DiesWithItsHandleAndTakesItsGroupAlong) {
  auto [ours, theirs] = stream_socket_pair();
  pid_t pid;
  {
    ChildProcess::Options options = shell("sleep 1000 & sleep 1000");
    options.fds = {{theirs.get(), 3}};
    ChildProcess child = ChildProcess::spawn(options);
    theirs.reset();
    pid = child.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_EQ(drain(ours.get()), "") << "ends only when the grandchildren, which hold the socket, are gone too";
}

TEST(ChildProcess, MovesWithoutDyingTwice) {
  ChildProcess first = ChildProcess::spawn(shell("exit 1"));
  ChildProcess second = std::move(first);
  EXPECT_EQ(second.wait()->code, 1);
  second = ChildProcess::spawn(shell("exit 2"));
  EXPECT_EQ(second.wait()->code, 2);
  ChildProcess sleeping = ChildProcess::spawn(shell("sleep 1000"));
  const pid_t pid = sleeping.pid();
  sleeping = std::move(second);
  EXPECT_EQ(::kill(pid, 0), -1) << "the one that was replaced is gone";
}

// An agent that was killed left workers behind that held the GPUs.
TEST(ChildProcess, CanDieWithItsParent) {
  auto [ours, theirs] = stream_socket_pair();
  const pid_t middle = ::fork();
  if (middle == 0) {
    ChildProcess::Options options = shell("echo ready >&3; exec sleep 1000");
    options.fds = {{theirs.get(), 3}};
    options.parent_death_signal = SIGKILL;
    const ChildProcess child = ChildProcess::spawn(options);
    ::pause();
    ::_exit(0);
  }
  theirs.reset();
  char text[6] = {};
  ASSERT_EQ(::recv(ours.get(), text, 6, MSG_WAITALL), 6);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  pollfd closed{ours.get(), POLLIN, 0};  // the socket ends when nobody holds the other side
  EXPECT_EQ(::poll(&closed, 1, 10000), 1);
  EXPECT_EQ(drain(ours.get()), "");
}

TEST(Process, KnowsItself) {
  EXPECT_TRUE(FileSystem::real().exists(program_directory()));
  EXPECT_GT(peak_rss_bytes(), 1024u * 1024);
  const double now = Clock::real().unix_seconds();
  const double start = process_start_unix_seconds(::getpid());
  EXPECT_LE(start, now + 0.1);
  EXPECT_GT(start, now - 3600);
  EXPECT_NEAR(process_start_unix_seconds(::getpid()), start, 0.05) << "the same whenever it is asked";
  EXPECT_THROW(process_start_unix_seconds(-5), Error);
}

TEST(Fd, ClosesOnceAndMoves) {
  int raw;
  {
    Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = fd.get();
    Fd moved = std::move(fd);
    EXPECT_FALSE(fd);
    EXPECT_EQ(moved.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

}  // namespace
}  // namespace skytrain
