#include "skytrain/record/run_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::record {
namespace {

constexpr double kStart = 1764510607.0;  // 2025-11-30T13:50:07Z

class Runs : public testing::Test {
 protected:
  RunDirectory create(const std::string& name = "mnist") {
    return RunDirectory::create(fs, clock, "/runs", name, "name: mnist\n", {{"name", "mnist"}},
                                {{"name", "mnist"}, {"attempts", OrderedJson::array()}});
  }
  std::vector<std::string> found_paths(std::vector<std::string>* notes = nullptr) {
    std::vector<std::string> paths;
    for (const RunDirectory& run : find_runs(fs, "/runs", "mnist", notes)) paths.push_back(run.path());
    return paths;
  }
  void put(const std::string& path, const std::string& text) {
    fs.open_write(path, FileSystem::Mode::kTruncate)->append(text);
  }

  MemoryFileSystem fs;
  FakeClock clock{kStart};
};

TEST_F(Runs, AreNamedByTheSecondTheyBegan) {
  const RunDirectory run = create();
  EXPECT_EQ(run.path(), "/runs/mnist/20251130T135007Z");
  EXPECT_EQ(fs.read_file(run.recipe_yaml()), "name: mnist\n");
  EXPECT_EQ(parse_json(fs.read_file(run.recipe_json()), "").at("name"), "mnist");
  EXPECT_EQ(parse_json(fs.read_file(run.run_json()), "").at("name"), "mnist");
}

TEST_F(Runs, OfOneSecondAreNumbered) {
  std::vector<std::string> paths;
  for (int i = 0; i < 11; ++i) paths.insert(paths.begin(), create().path());
  EXPECT_EQ(paths.back(), "/runs/mnist/20251130T135007Z");
  EXPECT_EQ(paths.front(), "/runs/mnist/20251130T135007Z-11");
  EXPECT_EQ(found_paths(), paths);  // newest first, also beyond -9
}

TEST_F(Runs, SurviveAPowerCutWhole) {
  fs.make_directories("/runs/mnist");
  fs.sync_directory("/");
  fs.sync_directory("/runs");
  create();
  fs.crash();
  EXPECT_EQ(found_paths(), (std::vector<std::string>{"/runs/mnist/20251130T135007Z"}));
}

TEST_F(Runs, CutShortInTheMakingArePassedOver) {
  for (int fail_at = 1;; ++fail_at) {
    MemoryFileSystem disk;
    int calls = 0;
    disk.set_fault([&](std::string_view, const std::string&) { return ++calls == fail_at ? EIO : 0; });
    try {
      RunDirectory::create(disk, clock, "/runs", "mnist", "a: 1\n", {{"a", 1}}, {{"name", "mnist"}});
      break;  // every call has failed once
    } catch (const Error&) {
    }
    disk.set_fault(nullptr);
    for (const RunDirectory& run : find_runs(disk, "/runs", "mnist", nullptr)) {
      EXPECT_EQ(disk.read_file(run.recipe_yaml()), "a: 1\n") << fail_at;
      EXPECT_TRUE(disk.exists(run.recipe_json())) << fail_at;
    }
  }
}

TEST_F(Runs, NamesThatWouldLeaveTheFolderAreRefused) {
  for (const std::string name : {"", "..", "../x", "a/b", ".hidden", "a b", "a\nb"}) {
    EXPECT_THROW(create(name), Error) << name;
    EXPECT_THROW(find_runs(fs, "/runs", name, nullptr), Error) << name;
  }
}

// A recipe named "lr=0.1+aug" was accepted, and its run refused.
TEST_F(Runs, AreNamedByTheRecipesRules) {
  EXPECT_EQ(create("lr=0.1+aug").path(), "/runs/lr=0.1+aug/20251130T135007Z");
  EXPECT_TRUE(find_runs(fs, "/runs", "mnist", nullptr).empty());
}

// Another process found the new run by its run.json, and took it before its creator had locked it.
TEST_F(Runs, AreClaimedBeforeOthersFindThem) {
  int claims = 0;
  RunDirectory::create(fs, clock, "/runs", "mnist", "", {}, {}, [&](const RunDirectory& run) {
    ++claims;
    EXPECT_TRUE(fs.exists(run.path()));
    EXPECT_FALSE(fs.exists(run.run_json()));
    EXPECT_TRUE(found_paths().empty());
  });
  EXPECT_EQ(claims, 1);
  EXPECT_EQ(found_paths().size(), 1u);
}

// The newest folder was chosen by name, so a copy that someone had called "handpicked" was resumed.
TEST_F(Runs, FoldersThatAreNoRunsArePassedOverWithANote) {
  const RunDirectory good = create();
  clock.advance(60);
  const RunDirectory torn = create();
  put(torn.run_json(), "{\"name\": \"mni");
  clock.advance(60);
  fs.remove_file(create().run_json());
  fs.make_directories("/runs/mnist/handpicked");
  put("/runs/mnist/handpicked/run.json", "{}");
  fs.make_directories("/runs/mnist/20990101T000000Z-x");
  put("/runs/mnist/notes.txt", "mine");

  std::vector<std::string> notes;
  EXPECT_EQ(found_paths(&notes), (std::vector<std::string>{good.path()}));
  ASSERT_EQ(notes.size(), 4u);
  for (const char* name : {"20251130T135107Z", "20251130T135207Z", "handpicked", "20990101T000000Z-x"}) {
    EXPECT_EQ(std::count_if(notes.begin(), notes.end(),
                            [&](const std::string& note) { return note.find(name) != std::string::npos; }),
              1)
        << name;
  }
  EXPECT_TRUE(find_runs(fs, "/nowhere", "mnist", nullptr).empty());
}

TEST_F(Runs, KeepTheirAttempts) {
  const RunDirectory run = create();
  add_attempt(fs, run, {{"started", "2025-11-30T13:50:07Z"}, {"resumed_from_step", 0}});
  add_attempt(fs, run, {{"started", "2025-11-30T14:50:07Z"}, {"resumed_from_step", 400}});
  const Json json = parse_json(fs.read_file(run.run_json()), run.run_json());
  ASSERT_EQ(json.at("attempts").size(), 2u);
  EXPECT_EQ(json.at("attempts")[1].at("resumed_from_step"), 400);
  EXPECT_EQ(json.at("name"), "mnist");
  put(run.run_json(), "[]");
  EXPECT_THROW(add_attempt(fs, run, {{"started", "…"}}), Error);
}

class RunLock : public testing::Test {
 protected:
  RunLock() {
    std::string pattern = testing::TempDir() + "skytrain-lock-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RunLock() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(RunLock, IsExclusiveAndNamesItsHolder) {
  const RunDirectory run(folder_);
  FakeClock clock;
  {
    const Fd held = lock_run(run, 0);
    try {
      lock_run(run, 3, clock);
      FAIL() << "two writers";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      EXPECT_NE(error.message().find("is in use by"), std::string::npos) << error.message();
      // A container may hide the holder, but a wrong one must not be named.
      if (error.problem().find("another process") == std::string::npos) {
        EXPECT_NE(error.problem().find(str("process ", getpid())), std::string::npos) << error.message();
      }
    }
    EXPECT_GE(clock.monotonic_seconds(), 3);
  }
  EXPECT_TRUE(lock_run(run, 0));
  EXPECT_EQ(FileSystem::real().stat(run.lock())->size, 0u);
}

TEST_F(RunLock, ThatIsTakenIsNoErrorButOneThatCanNotBeOpenedIs) {
  const RunDirectory run(folder_);
  std::optional<Fd> held = try_lock_run(run);
  ASSERT_TRUE(held);
  std::string in_use;
  EXPECT_FALSE(try_lock_run(run, &in_use));
  EXPECT_EQ(in_use.rfind("is in use by ", 0), 0u) << in_use;
  held.reset();
  EXPECT_TRUE(try_lock_run(run));
  EXPECT_THROW(try_lock_run(RunDirectory(folder_ + "/gone")), Error);
}

TEST_F(RunLock, EndsWithTheLastProcessThatHoldsIt) {
  const RunDirectory run(folder_);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Fd held = lock_run(run, 0);
    const char byte = 'x';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THROW(lock_run(run, 0), Error);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock_run(run, 5));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RunLock, OfAFolderThatIsGoneSaysSo) {
  try {
    lock_run(RunDirectory(folder_ + "/gone"), 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_NE(error.message().find(folder_ + "/gone/lock"), std::string::npos);
  }
}

}  // namespace
}  // namespace skytrain::record
