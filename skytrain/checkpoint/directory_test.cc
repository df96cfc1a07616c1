#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"

namespace skytrain::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDirectory[] = "/run/checkpoints";
constexpr char kTensors[] = "/rank-0-of-1.safetensors";

class Directory : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return std::string(kDirectory) + "/" + name; }
  void rename(const std::string& from, const std::string& to) { fs_.rename(path(from), path(to)); }
  // name -> reason, of those that find_newest_valid passed over.
  std::map<std::string, std::string> skipped() {
    std::vector<Candidate> passed;
    find_newest_valid(fs_, kDirectory, &passed);
    std::map<std::string, std::string> reasons;
    for (const Candidate& candidate : passed) {
      EXPECT_FALSE(candidate.valid);
      EXPECT_EQ(candidate.reason.find('\n'), std::string::npos);
      reasons[candidate.path.substr(path("").size())] = candidate.reason;
    }
    return reasons;
  }
  std::string newest() {
    const auto found = find_newest_valid(fs_, kDirectory, nullptr);
    return found ? found->path.substr(path("").size()) : "";
  }

  MemoryFileSystem fs_;
};

TEST_F(Directory, WithoutCheckpointsHasNoNewest) {
  EXPECT_EQ(newest(), "");
  EXPECT_TRUE(list_checkpoints(fs_, kDirectory, true).empty());
  fs_.make_directories(kDirectory);
  EXPECT_EQ(newest(), "");
  EXPECT_TRUE(prune(fs_, kDirectory, {.keep = 1}).empty());
}

TEST_F(Directory, NewestIsTheHighestStepNotTheHighestName) {
  for (uint64_t step : {9, 100000000, 99999999, 10}) save(fs_, kDirectory, step);
  EXPECT_EQ(newest(), "step-100000000");
  std::vector<uint64_t> steps;
  for (const Candidate& candidate : list_checkpoints(fs_, kDirectory, false)) steps.push_back(candidate.step);
  EXPECT_THAT(steps, ElementsAre(100000000, 99999999, 10, 9));
}

// The newest checkpoint was chosen by name: 100000 beat 0900000.
TEST_F(Directory, RenamedCheckpointsAreTakenByTheirManifestOrPassedOver) {
  for (uint64_t step : {8, 9, 10}) save(fs_, kDirectory, step);
  rename("step-00000009", "step-999");
  rename("step-00000010", "step-1000");
  EXPECT_EQ(newest(), "step-00000008");
  EXPECT_THAT(skipped()["step-999"], HasSubstr("step-999 is named for step 999, but its manifest.json says step 9"));
  EXPECT_THAT(skipped()["step-1000"], HasSubstr("says step 10"));
  rename("step-1000", "step-0010");  // other width, same number: they agree
  EXPECT_EQ(newest(), "step-0010");
}

// `handpicked` beat every step, being last in the alphabet of a listing.
TEST_F(Directory, OtherNamesNeverWin) {
  for (uint64_t step : {9, 10, 11}) save(fs_, kDirectory, step);
  rename("step-00000011", "handpicked");
  rename("step-00000009", "step-00000009.tmp");
  EXPECT_EQ(newest(), "step-00000010");
  EXPECT_THAT(skipped()["handpicked"], HasSubstr("not a checkpoint's name"));
  const auto all = list_checkpoints(fs_, kDirectory, true);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[2].reason, HasSubstr("step-00000009.tmp was never committed"));
}

// A torn directory was resumed from, because its name was the newest.
TEST_F(Directory, CheckpointWithoutManifestIsPassedOverWithAReason) {
  for (uint64_t step : {9, 10}) save(fs_, kDirectory, step);
  fs_.remove_file(path("step-00000010/manifest.json"));
  EXPECT_EQ(newest(), "step-00000009");
  EXPECT_THAT(skipped(), ElementsAre(testing::Pair("step-00000010", HasSubstr("manifest.json: is missing"))));
}

TEST_F(Directory, ReasonsNameTheFile) {
  for (uint64_t step = 1; step <= 6; ++step) save(fs_, kDirectory, step);
  const std::string content = fs_.read_file(path("step-00000002") + kTensors);
  overwrite(fs_, path("step-00000002") + kTensors, content.substr(0, 12));
  fs_.remove_file(path("step-00000003") + kTensors);
  overwrite(fs_, path("step-00000004") + kTensors, fs_.read_file(path("step-00000001") + kTensors));
  overwrite(fs_, path("step-00000005/manifest.json"), "{}");
  overwrite(fs_, path("step-00000006/manifest.json"), R"({"format": "skytrain-checkpoint", "version": 2})");
  fs_.make_directories(path("wip"));
  auto reasons = skipped();
  EXPECT_EQ(reasons["step-00000002"],
            "rank-0-of-1.safetensors is 12 bytes, manifest says " + std::to_string(content.size()));
  EXPECT_EQ(reasons["step-00000003"], "rank-0-of-1.safetensors is missing");
  EXPECT_THAT(reasons["step-00000004"], HasSubstr("rank-0-of-1.safetensors does not match its hash"));
  EXPECT_THAT(reasons["step-00000005"], HasSubstr("manifest.json: has no format"));
  EXPECT_THAT(reasons["step-00000006"],
              HasSubstr("manifest.json: has checkpoint format version 2, this SkyTrain reads"));
  EXPECT_THAT(reasons["wip"], HasSubstr("not a checkpoint's name"));
  EXPECT_EQ(newest(), "step-00000001");
}

TEST_F(Directory, FilesSwappedBetweenCheckpointsAreFound) {
  for (uint64_t step : {1, 2, 3}) save(fs_, kDirectory, step);
  const std::string second = fs_.read_file(path("step-00000002") + kTensors);
  overwrite(fs_, path("step-00000002") + kTensors, fs_.read_file(path("step-00000003") + kTensors));
  overwrite(fs_, path("step-00000003") + kTensors, second);
  EXPECT_EQ(newest(), "step-00000001");
  const auto quick = list_checkpoints(fs_, kDirectory, /*hash=*/false);
  const auto thorough = list_checkpoints(fs_, kDirectory, /*hash=*/true);
  EXPECT_TRUE(quick[0].valid && quick[1].valid);  // sizes alone don't tell
  EXPECT_FALSE(thorough[0].valid || thorough[1].valid);
}

TEST_F(Directory, SwappedManifestsAreFound) {
  for (uint64_t step : {1, 2}) save(fs_, kDirectory, step);
  const std::string one = fs_.read_file(path("step-00000001/manifest.json"));
  overwrite(fs_, path("step-00000001/manifest.json"), fs_.read_file(path("step-00000002/manifest.json")));
  overwrite(fs_, path("step-00000002/manifest.json"), one);
  EXPECT_EQ(newest(), "");
}

TEST_F(Directory, OldCheckpointsAreNotReadOnceOneIsFound) {
  for (uint64_t step : {1, 2}) save(fs_, kDirectory, step);
  overwrite(fs_, path("step-00000001") + kTensors, "x");
  EXPECT_EQ(newest(), "step-00000002");
  EXPECT_TRUE(skipped().empty());
}

TEST_F(Directory, FileInACheckpointsPlaceIsPassedOver) {
  save(fs_, kDirectory, 1);
  overwrite(fs_, path("step-00000002"), "x");
  overwrite(fs_, path("notes.txt"), "x");
  fs_.make_directories(path(".snapshot"));
  EXPECT_EQ(newest(), "step-00000001");
  EXPECT_THAT(skipped(), ElementsAre(testing::Pair("step-00000002", HasSubstr("is not a folder"))));
}

TEST_F(Directory, PruneKeepsTheNewest) {
  for (uint64_t step = 1; step <= 5; ++step) save(fs_, kDirectory, step);
  fs_.make_directories(path("step-00000006.tmp"));
  fs_.make_directories(path("my.tmp"));
  EXPECT_THAT(prune(fs_, kDirectory, {.keep = 2}), ElementsAre(path("step-00000006.tmp"), path("step-00000003"),
                                                               path("step-00000002"), path("step-00000001")));
  EXPECT_THAT(fs_.list(kDirectory), ElementsAre("my.tmp", "step-00000004", "step-00000005"));
  EXPECT_TRUE(prune(fs_, kDirectory, {.keep = 2}).empty());
  EXPECT_THROW(prune(fs_, kDirectory, {.keep = 0}), Error);
}

TEST_F(Directory, PruneNeverRemovesTheNewestSoundOne) {
  for (uint64_t step = 1; step <= 5; ++step) save(fs_, kDirectory, step);
  for (const char* name : {"step-00000003", "step-00000004", "step-00000005"}) {  // right size, wrong content
    std::string content = fs_.read_file(path(name) + kTensors);
    content.back() ^= 1;
    overwrite(fs_, path(name) + kTensors, content);
  }
  prune(fs_, kDirectory, {.keep = 1});
  EXPECT_EQ(newest(), "step-00000002");
  EXPECT_FALSE(fs_.exists(path("step-00000001")));
}

TEST_F(Directory, PruneSparesTheOneItIsToldTo) {
  for (uint64_t step = 1; step <= 5; ++step) save(fs_, kDirectory, step);
  prune(fs_, kDirectory, {.keep = 1, .spared = [](uint64_t step) { return step == 2; }});
  EXPECT_THAT(fs_.list(kDirectory), ElementsAre("step-00000002", "step-00000005"));
}

TEST_F(Directory, PruneLeavesWhatItDoesNotUnderstand) {
  for (uint64_t step = 1; step <= 3; ++step) save(fs_, kDirectory, step);
  rename("step-00000001", "handpicked");
  overwrite(fs_, path("step-00000002/manifest.json"), R"({"format": "skytrain-checkpoint", "version": 2})");
  save(fs_, kDirectory, 4);
  EXPECT_THAT(prune(fs_, kDirectory, {.keep = 1}), ElementsAre(path("step-00000003")));
  EXPECT_THAT(fs_.list(kDirectory), ElementsAre("handpicked", "step-00000002", "step-00000004"));
}

struct Killed {};

TEST_F(Directory, PruneMayDieAnywhere) {
  bool died = true;
  for (int die_at = 0; died; ++die_at) {
    MemoryFileSystem fs;
    for (uint64_t step = 1; step <= 4; ++step) save(fs, kDirectory, step);
    int calls = 0;
    died = false;
    fs.set_fault([&](std::string_view, const std::string&) -> int {
      if (calls++ < die_at) return 0;
      died = true;
      throw Killed();
    });
    try {
      prune(fs, kDirectory, {.keep = 1});
    } catch (const Killed&) {
    }
    fs.set_fault(nullptr);
    for (int crashed = 0; crashed < 2; ++crashed) {
      const auto found = find_newest_valid(fs, kDirectory, nullptr);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->step, 4u);
      for (const Candidate& candidate : list_checkpoints(fs, kDirectory, true)) {
        EXPECT_TRUE(candidate.valid || candidate.path.ends_with(".tmp")) << candidate.reason;
      }
      fs.crash();
    }
    prune(fs, kDirectory, {.keep = 1});
    EXPECT_THAT(fs.list(kDirectory), ElementsAre("step-00000004"));
  }
}

}  // namespace
}  // namespace skytrain::checkpoint
