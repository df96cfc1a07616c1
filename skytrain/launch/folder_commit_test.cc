#include "skytrain/launch/folder_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/launch/commit_manifest.h"

namespace skytrain::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct PowerCut {};

class FolderCommitTest : public ::testing::Test {
 protected:
  void SetUp() override { start(); }

  // A new life of the agent, on what the disk holds.
  void start() {
    CommitHooks hooks;
    hooks.is_link = [this](const std::string& path) { return links_.count(path) > 0; };
    hooks.open_for_writing = [this] { return open_; };
    hooks.stop = [this] { return stop_; };
    hooks.note = [this](const std::string& line) { notes_.push_back(line); };
    folder_.emplace(fs_, options_, hooks);
    folder_->prepare();
    folder_->pass_over_what_is_there();
  }

  void write(const std::string& path, const std::string& content) {
    const std::string full = "/watch/" + path;
    fs_.make_directories(full.substr(0, full.rfind('/')));
    const auto file = fs_.open_write(full, FileSystem::Mode::kTruncate);
    file->append(std::string_view(content));
    file->close();
  }

  // Looks at the folder for so long, as the agent's thread does.
  void pass(double seconds) {
    for (const double end = now_ + seconds; now_ < end;) folder_->poll(now_ += 0.5);
  }

  // What was committed, without manifests.
  std::vector<std::string> there() const {
    std::vector<std::string> names;
    for (const std::string& name : fs_.list("/kept")) {
      if (name.find(".skytrain.") == std::string::npos) names.push_back(name);
    }
    return names;
  }

  MemoryFileSystem fs_;
  CommitOptions options_{"/watch", "/kept", 3, 2};
  std::set<std::string> links_;
  std::vector<std::string> open_, notes_;
  bool stop_ = false;
  double now_ = 100;
  std::optional<FolderCommit> folder_;
};

TEST_F(FolderCommitTest, WhatIsQuietForTwoSecondsIsCommitted) {
  pass(1);
  write("a.pt", "first");
  pass(1.5);
  EXPECT_THAT(there(), IsEmpty());
  write("a.pt", "second, longer");  // it was not done
  pass(1.5);
  EXPECT_THAT(there(), IsEmpty());
  pass(1.5);
  EXPECT_THAT(there(), ElementsAre("a.pt"));
  EXPECT_EQ(fs_.read_file("/kept/a.pt"), "second, longer");
  EXPECT_EQ(folder_->newest_valid(), "/kept/a.pt");
  EXPECT_THAT(folder_->committed(), ElementsAre("/kept/a.pt"));
  pass(10);
  EXPECT_THAT(there(), ElementsAre("a.pt"));
}

TEST_F(FolderCommitTest, AFolderIsCommittedWhole) {
  write("step-1/model/shard-0", "zero");
  write("step-1/model/shard-1", "one");
  write("step-1/meta.json", "{}");
  fs_.make_directories("/watch/step-1/empty");
  pass(3);
  EXPECT_EQ(fs_.read_file("/kept/step-1/model/shard-1"), "one");
  EXPECT_TRUE(fs_.exists("/kept/step-1/empty"));
  const Commit commit = parse_commit(fs_.read_file("/kept/step-1.skytrain.json"), "");
  EXPECT_TRUE(commit.folder);
  ASSERT_EQ(commit.files.size(), 3U);
  EXPECT_EQ(commit.files[0].path, "meta.json");
  EXPECT_EQ(commit.files[0].bytes, 2U);
}

TEST_F(FolderCommitTest, WhatSaysThatItIsNotDoneIsNeverCommitted) {
  for (const char* name : {"a.tmp", "b.part", ".hidden", "folder/shard.tmp"}) write(name, "x");
  write("empty.pt", "");
  fs_.make_directories("/watch/nothing");
  pass(10);
  folder_->flush(now_);
  EXPECT_THAT(there(), IsEmpty());
}

TEST_F(FolderCommitTest, WhatIsOpenForWritingIsNotComplete) {
  write("step-1/shard", "half");
  open_ = {"/watch/step-1/shard"};
  pass(20);
  EXPECT_THAT(there(), IsEmpty());
  open_.clear();
  pass(1.5);
  EXPECT_THAT(there(), IsEmpty()) << "it may have been closed by a crash";
  pass(1.5);
  EXPECT_THAT(there(), ElementsAre("step-1"));
}

TEST_F(FolderCommitTest, AtAGoodEndNothingIsWaitedFor) {
  write("a.pt", "x");
  folder_->flush(now_);
  EXPECT_THAT(there(), ElementsAre("a.pt"));
}

// A rank that was killed in the middle of a save leaves a file that is quiet and closed.
TEST_F(FolderCommitTest, WhatACrashHasLeftIsPassedOverUntilItChanges) {
  write("a.pt", "half");
  folder_->pass_over_what_is_there();
  pass(10);
  EXPECT_THAT(there(), IsEmpty());
  write("a.pt", "whole now");
  pass(3);
  EXPECT_THAT(there(), ElementsAre("a.pt"));
}

TEST_F(FolderCommitTest, LinksAreLeftOutAndNamed) {
  write("step-1/shard", "x");
  write("step-1/link", "secret");
  write("latest", "secret");
  links_ = {"/watch/step-1/link", "/watch/latest"};
  pass(3);
  EXPECT_THAT(there(), ElementsAre("step-1"));
  EXPECT_FALSE(fs_.exists("/kept/step-1/link"));
  EXPECT_THAT(notes_.back(), HasSubstr("left out: link"));
}

TEST_F(FolderCommitTest, ANameThatComesAgainReplacesNothing) {
  write("last.pt", "one");
  pass(3);
  write("last.pt", "second");
  pass(3);
  write("last.pt", "the third");
  pass(3);
  EXPECT_THAT(there(), ElementsAre("last.pt", "last.v2.pt", "last.v3.pt"));
  EXPECT_EQ(fs_.read_file("/kept/last.pt"), "one");
  EXPECT_EQ(folder_->newest_valid(), "/kept/last.v3.pt");
}

TEST_F(FolderCommitTest, TheSameContentIsNotCommittedTwice) {
  write("last.pt", "one");
  pass(3);
  write("last.pt", "longer");
  folder_->poll(now_);
  write("last.pt", "one");
  folder_->flush(now_);
  EXPECT_THAT(there(), ElementsAre("last.pt"));
}

TEST_F(FolderCommitTest, TheNewestStay) {
  for (int i = 0; i < 6; ++i) {
    write(str("step-", i, "/x"), str(i));
    pass(3);
  }
  EXPECT_THAT(there(), ElementsAre("step-3", "step-4", "step-5"));
  EXPECT_EQ(fs_.list("/kept").size(), 6U) << "and their manifests";
  start();
  pass(10);
  EXPECT_THAT(there(), ElementsAre("step-3", "step-4", "step-5")) << "those that were removed do not come again";
}

TEST_F(FolderCommitTest, ADamagedOneIsPassedOverAndNamed) {
  write("a.pt", "older");
  pass(3);
  write("b.pt", "newer");
  pass(3);
  fs_.open_write("/kept/b.pt", FileSystem::Mode::kTruncate)->append(std::string_view("newes"));
  notes_.clear();
  EXPECT_EQ(folder_->newest_valid(), "/kept/a.pt");
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("/kept/b.pt does not match its hash"));
  fs_.truncate("/kept/a.pt", 2);
  EXPECT_EQ(folder_->newest_valid(), std::nullopt);
}

TEST_F(FolderCommitTest, AManifestDoesNotLeadOutOfItsCommit) {
  for (const char* path : {"../x", "/etc/passwd", "a/../../x", "", "a//b", "."}) {
    Commit commit;
    commit.name = commit.source = "step-1", commit.folder = true;
    commit.files = {{path, 1, "00"}};
    EXPECT_THROW(parse_commit(format_commit(commit), ""), Error) << path;
  }
  EXPECT_THROW(parse_commit("{}", ""), Error);
  EXPECT_THROW(parse_commit("[1]", ""), Error);
}

TEST_F(FolderCommitTest, AFullDiskIsToldOnceAndTriedAgain) {
  write("a.pt", std::string(1000, 'a'));
  fs_.set_capacity(1500);
  pass(40);
  EXPECT_THAT(there(), IsEmpty());
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("a.pt could not be committed and will be tried again"));
  EXPECT_THAT(notes_[0], HasSubstr("No space left on device"));
  EXPECT_THROW(folder_->flush(now_), Error);
  fs_.set_capacity(1'000'000);
  pass(20);
  EXPECT_THAT(there(), ElementsAre("a.pt"));
}

TEST_F(FolderCommitTest, OlderOnesGiveWayToANewOneButNotTheLast) {
  const std::string large(1'000'000, 'x');
  for (const char* name : {"a", "b"}) {
    write(name, large + name);
    pass(3);
    fs_.remove_file(std::string("/watch/") + name);
  }
  write("c", large + "c");
  fs_.set_capacity(3'100'000);
  pass(3);
  EXPECT_THAT(there(), ElementsAre("b", "c")) << join(notes_, "\n");
  fs_.set_capacity(100'000'000);
  write("d", large + large + large);
  fs_.set_capacity(6'100'000);
  pass(40);
  EXPECT_THAT(there(), ElementsAre("c"));
  EXPECT_EQ(folder_->newest_valid(), "/kept/c");
}

TEST_F(FolderCommitTest, WhatChangesWhileItIsCopiedIsNotCommitted) {
  write("a.pt", "one");
  fs_.set_fault([this, done = false](std::string_view call, const std::string& path) mutable {
    if (call == "append" && path.find("/kept/a.pt.skytrain.tmp") == 0 && !done) {
      done = true;
      write("a.pt", "changed meanwhile");
    }
    return 0;
  });
  pass(2.5);
  EXPECT_THAT(there(), IsEmpty());
  pass(5);
  EXPECT_EQ(fs_.read_file("/kept/a.pt"), "changed meanwhile");
  EXPECT_THAT(notes_, ::testing::Each(HasSubstr("committed")));
}

TEST_F(FolderCommitTest, ASecondStopRequestEndsACopy) {
  write("a.pt", "x");
  stop_ = true;
  EXPECT_THROW(folder_->flush(now_), Error);
  EXPECT_THAT(fs_.list("/kept"), IsEmpty());
}

// The power may go, or a call fail, at any moment: what counts afterwards is whole and no older than what counted
// before, nothing else is left in the way, and the next life commits again.
enum class Trouble { kPowerCut, kPowerCutKeepingNames, kFailedCall };
class FolderCommitTrouble : public FolderCommitTest, public ::testing::WithParamInterface<Trouble> {};

TEST_P(FolderCommitTrouble, AtEveryCallLeavesAGoodOne) {
  options_.keep = 1;
  int64_t calls = -1;
  for (int64_t fatal = 0; calls < 0 || fatal <= calls; ++fatal) {
    SCOPED_TRACE(str("call ", fatal));
    fs_.set_fault({});
    fs_.remove_tree("/watch");
    fs_.remove_tree("/kept");
    start();
    write("step-1/x", "the first");
    folder_->flush(now_);
    write("step-2/sub/x", "the second");
    fs_.remove_tree("/watch/step-1");
    int64_t n = 0;
    fs_.set_fault([&](std::string_view, const std::string&) {
      if (n++ != fatal) return 0;
      if (GetParam() != Trouble::kFailedCall) throw PowerCut();
      return EIO;
    });
    bool done = false;
    try {
      folder_->flush(now_);
      done = true;
    } catch (const PowerCut&) {
    } catch (const Error&) {
    }
    fs_.set_fault({});
    if (calls < 0 || n > calls) calls = n;
    if (GetParam() == Trouble::kPowerCut) fs_.crash();
    if (GetParam() == Trouble::kPowerCutKeepingNames) fs_.crash_keeping_names();
    start();
    const auto newest = folder_->newest_valid();
    ASSERT_TRUE(newest.has_value());
    if (done) {
      EXPECT_EQ(newest, "/kept/step-2");
    }
    EXPECT_EQ(fs_.read_file(*newest + (*newest == "/kept/step-2" ? "/sub/x" : "/x")),
              *newest == "/kept/step-2" ? "the second" : "the first");
    for (const std::string& name : fs_.list("/kept")) {
      EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    }
    write("step-3/x", "the third");
    folder_->flush(now_);
    EXPECT_EQ(folder_->newest_valid(), "/kept/step-3");
    EXPECT_THAT(there(), ElementsAre("step-3"));
  }
  EXPECT_GT(calls, 10);
}

INSTANTIATE_TEST_SUITE_P(All, FolderCommitTrouble,
                         ::testing::Values(Trouble::kPowerCut, Trouble::kPowerCutKeepingNames, Trouble::kFailedCall));

TEST_F(FolderCommitTest, FoldersInOneAnotherAreRefused) {
  for (const auto& [watch, to] :
       std::vector<std::pair<std::string, std::string>>{{"/a", "/a"}, {"/a", "/a/b"}, {"/a/b", "/a"}, {"/", "/x"}}) {
    FolderCommit folder(fs_, {watch, to, 1, 2}, {});
    EXPECT_THROW(folder.prepare(), Error) << watch << " " << to;
  }
  FolderCommit(fs_, {"/a", "/ab", 1, 2}, {}).prepare();
}

}  // namespace
}  // namespace skytrain::launch
