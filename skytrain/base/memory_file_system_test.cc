// The fake disk's own behaviour (power cuts, faults, a full disk), and what write_file_atomically makes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"

namespace skytrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Killed {};  // what a test throws where the process is to die

// A disk with one durable file, /run/f = "old".
void prepare(MemoryFileSystem& fs) {
  fs.make_directories("/run");
  fs.sync_directory("/");
  const auto file = fs.open_write("/run/f", FileSystem::Mode::kTruncate);
  file->append("old");
  file->sync();
  file->close();
  fs.sync_directory("/run");
}

TEST(PowerCut, ForgetsBytesThatWereNotSynced) {
  MemoryFileSystem fs;
  prepare(fs);
  const auto file = fs.open_write("/run/f", FileSystem::Mode::kAppend);
  file->append("+synced");
  file->sync();
  file->append("+lost");
  fs.crash();
  EXPECT_EQ(fs.read_file("/run/f"), "old+synced");
}

TEST(PowerCut, ForgetsNamesWhoseFolderWasNotSynced) {
  MemoryFileSystem fs;
  prepare(fs);
  const auto file = fs.open_write("/run/g", FileSystem::Mode::kTruncate);
  file->append("x");
  file->sync();
  file->close();
  fs.rename("/run/f", "/run/h");
  fs.make_directories("/run/sub");
  fs.crash();
  EXPECT_THAT(fs.list("/run"), ElementsAre("f"));
  EXPECT_EQ(fs.read_file("/run/f"), "old");
}

TEST(PowerCut, BringsBackWhatWasRemovedWithoutASync) {
  MemoryFileSystem fs;
  prepare(fs);
  fs.remove_file("/run/f");
  fs.crash();
  EXPECT_EQ(fs.read_file("/run/f"), "old");
  fs.remove_tree("/run");
  fs.sync_directory("/");
  fs.crash();
  EXPECT_FALSE(fs.exists("/run"));
}

// ext4 and XFS: a file renamed without an fsync before it was there after the crash, and empty.
TEST(PowerCut, CanKeepNamesAndLoseBytes) {
  MemoryFileSystem fs;
  prepare(fs);
  const auto file = fs.open_write("/run/g", FileSystem::Mode::kTruncate);
  file->append("new");
  file->close();
  fs.rename("/run/g", "/run/f");
  fs.crash_keeping_names();
  EXPECT_EQ(fs.read_file("/run/f"), "");
}

TEST(PowerCut, KillsOpenFiles) {
  MemoryFileSystem fs;
  prepare(fs);
  const auto file = fs.open_write("/run/f", FileSystem::Mode::kAppend);
  fs.crash();
  EXPECT_THROW(file->append("x"), Error);
  EXPECT_EQ(fs.read_file("/run/f"), "old");
}

TEST(FullDisk, TakesWhatFitsAndThenRefuses) {
  MemoryFileSystem fs;
  prepare(fs);
  fs.set_capacity(5);
  EXPECT_EQ(fs.free_bytes("/run"), 2u);
  const auto file = fs.open_write("/run/g", FileSystem::Mode::kTruncate);
  try {
    file->append("1234");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), HasSubstr("/run/g: cannot write: No space left on device"));
  }
  EXPECT_EQ(fs.read_file("/run/g"), "12");
  EXPECT_EQ(fs.free_bytes("/run"), 0u);
  fs.remove_file("/run/f");
  EXPECT_EQ(fs.free_bytes("/run"), 3u);
}

TEST(Fault, ReachesEveryMutatingCallByName) {
  MemoryFileSystem fs;
  prepare(fs);
  std::vector<std::string> calls;
  fs.set_fault([&](std::string_view call, const std::string& path) {
    calls.push_back(std::string(call) + " " + path);
    return 0;
  });
  write_file_atomically(fs, "/run/f", "new");
  fs.truncate("/run/f", 1);
  fs.make_directory("/run/d");
  fs.remove_tree("/run/d");
  fs.remove_file("/run/f");
  EXPECT_THAT(calls, ElementsAre("open /run/f.tmp", "append /run/f.tmp", "sync /run/f.tmp", "close /run/f.tmp",
                                 "rename /run/f.tmp", "sync_directory /run", "truncate /run/f", "mkdir /run/d",
                                 "remove_tree /run/d", "remove /run/f"));
}

// Runs write_file_atomically and lets the n-th call end in `what`; returns false when there is no n-th call.
enum class Ending { kNoSpace, kIoError, kKilled };
bool write_with_fault(MemoryFileSystem& fs, int n, Ending ending) {
  int count = 0;
  bool reached = false;
  fs.set_fault([&](std::string_view, const std::string&) {
    if (count++ != n) return 0;
    reached = true;
    if (ending == Ending::kKilled) throw Killed();
    return ending == Ending::kNoSpace ? ENOSPC : EIO;
  });
  try {
    write_file_atomically(fs, "/run/f", "new content");
    EXPECT_FALSE(reached) << "a failed call went unnoticed";
  } catch (const Error& error) {
    EXPECT_TRUE(reached);
    EXPECT_THAT(error.problem(), HasSubstr(ending == Ending::kNoSpace ? "No space left" : "Input/output error"));
  } catch (const Killed&) {
  }
  fs.set_fault(nullptr);
  return reached;
}

TEST(WriteFileAtomically, LeavesOldOrNewAtEveryFaultPoint) {
  for (const Ending ending : {Ending::kNoSpace, Ending::kIoError, Ending::kKilled}) {
    for (int power_cut = 0; power_cut < 3; ++power_cut) {
      int n = 0;
      while (true) {
        MemoryFileSystem fs;
        prepare(fs);
        const bool reached = write_with_fault(fs, n, ending);
        if (power_cut == 1) fs.crash();
        if (power_cut == 2) fs.crash_keeping_names();
        const std::string content = fs.read_file("/run/f");
        EXPECT_TRUE(content == "old" || content == "new content")
            << "call " << n << ", power cut " << power_cut << ": " << content;
        if (!reached) {
          EXPECT_EQ(content, "new content") << "success was reported";
          break;
        }
        // The next attempt must not stumble over leftovers.
        write_file_atomically(fs, "/run/f", "third");
        EXPECT_EQ(fs.read_file("/run/f"), "third");
        ++n;
      }
      EXPECT_EQ(n, 6) << "open, append, sync, close, rename, sync_directory";
    }
  }
}

TEST(WriteFileAtomically, IsDurableWhenItReturns) {
  MemoryFileSystem fs;
  prepare(fs);
  write_file_atomically(fs, "/run/f", "new");
  fs.crash();
  EXPECT_EQ(fs.read_file("/run/f"), "new");
  EXPECT_THAT(fs.list("/run"), ElementsAre("f"));
}

TEST(WriteFileAtomically, TakesItsLeftoversFromAFullDisk) {
  MemoryFileSystem fs;
  prepare(fs);
  fs.set_capacity(8);
  EXPECT_THROW(write_file_atomically(fs, "/run/f", "too much for the disk"), Error);
  EXPECT_THAT(fs.list("/run"), ElementsAre("f"));
  EXPECT_EQ(fs.read_file("/run/f"), "old");
}

TEST(WriteFileAtomically, WorksInTheCurrentFolder) {
  MemoryFileSystem fs;
  write_file_atomically(fs, "bare_name", "x");
  EXPECT_EQ(fs.read_file("bare_name"), "x");
}

TEST(MemoryFileSystem, RefusesAFailedOpenWithoutLeavingAName) {
  MemoryFileSystem fs;
  EXPECT_THROW(fs.open_write("/none/f", FileSystem::Mode::kTruncate), Error);
  EXPECT_THAT(fs.list("/"), IsEmpty());
}

}  // namespace
}  // namespace skytrain
