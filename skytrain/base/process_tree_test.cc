#include "skytrain/base/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "skytrain/base/process.h"

namespace skytrain {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

// Runs `body` in a child of its own, so that this process does not become a subreaper; what it returns is the result.
template <class Body>
int in_child(Body&& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

pid_t start_sleeper() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    while (true) ::pause();
  }
  return pid;
}

TEST(ProcessTree, KnowsChildrenAndTheirChildren) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = start_sleeper();
    if (::write(ends[1], &grandchild, sizeof grandchild) < 0) ::_exit(1);
    while (true) ::pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  EXPECT_THAT(children_of(::getpid()), Contains(child));
  EXPECT_THAT(children_of(::getpid()), Not(Contains(grandchild)));
  EXPECT_THAT(descendants_of(::getpid()), Contains(grandchild));
  EXPECT_FALSE(is_zombie(child));
  ::kill(grandchild, SIGKILL);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(is_zombie(child));
  EXPECT_THAT(ended_children(), Contains(child));
  reap_child(child);
  EXPECT_THAT(descendants_of(::getpid()), Not(Contains(child)));
  EXPECT_THAT(children_of(child), IsEmpty());
  EXPECT_EQ(name_of(child), "");
  ::close(ends[0]);
  ::close(ends[1]);
}

// Programs that daemonise themselves got away from torchrun and held the GPU's memory.
TEST(ProcessTree, NoneGetsAwayByASessionOfItsOwnOrByForkingTwice) {
  EXPECT_EQ(in_child([] {
              become_subreaper();
              for (int i = 0; i < 3; ++i) {
                const pid_t child = ::fork();
                if (child != 0) continue;
                ::setsid();
                if (::fork() == 0) {
                  ::setsid();
                  start_sleeper();
                  while (true) ::pause();
                }
                ::_exit(0);  // leaves its child an orphan
              }
              const Killed killed = kill_descendants(10, reap_child);
              if (!killed.left.empty()) return 1;
              return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD ? 0 : 2;
            }),
            0);
}

TEST(ProcessTree, WhatIsSparedLives) {
  EXPECT_EQ(in_child([] {
              become_subreaper();
              const pid_t spared = start_sleeper(), other = start_sleeper();
              const Killed killed = kill_descendants(10, reap_child, {spared});
              if (!killed.left.empty() || killed.names.size() != 1) return 1;
              if (::kill(other, 0) == 0) return 2;
              if (::kill(spared, 0) != 0 || is_zombie(spared)) return 3;
              return kill_descendants(10, reap_child).left.empty() ? 0 : 4;
            }),
            0);
}

TEST(ProcessTree, AProgramMayHaveAnotherNameThanItsPath) {
  ChildProcess::Options options;
  options.argv = {"another-name", "-c", "test \"$0\" = another-name"};
  options.program = "/bin/sh";
  EXPECT_TRUE(ChildProcess::spawn(options).wait(20)->ok());
}

}  // namespace
}  // namespace skytrain
