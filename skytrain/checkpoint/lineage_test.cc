#include "skytrain/checkpoint/lineage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"

namespace skytrain::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDirectory[] = "/run/checkpoints";

class LineageTest : public ::testing::Test {
 protected:
  LineageTest() { fs_.make_directories(kDirectory); }
  bool add(uint64_t number, uint64_t start_step) {
    return add_generation(fs_, kDirectory, {.number = number, .parent = number - 1, .start_step = start_step});
  }
  std::string save_of(uint64_t generation, uint64_t step) {
    const TestState state(step);
    Manifest manifest = state.manifest();
    manifest.generation = generation;
    return commit(fs_, kDirectory, manifest, state.arrays());
  }
  uint64_t newest(std::vector<Candidate>* skipped = nullptr) {
    const auto found = find_newest_valid(fs_, kDirectory, skipped);
    return found ? found->step : 0;
  }

  MemoryFileSystem fs_;
};

TEST_F(LineageTest, ARecordIsMadeOnce) {
  EXPECT_TRUE(add_generation(fs_, kDirectory, {.number = 0, .members = Json::array({{{"host", "a"}}})}));
  EXPECT_TRUE(add(1, 100));
  EXPECT_FALSE(add(1, 50)) << "somebody else was faster";
  const Lineage lineage = Lineage::read(fs_, kDirectory);
  EXPECT_EQ(lineage.newest(), 1u);
  EXPECT_EQ(lineage.generations().at(0).parent, std::nullopt);
  EXPECT_EQ(lineage.generations().at(0).members[0]["host"], "a");
  EXPECT_EQ(lineage.generations().at(1).parent, 0u);
  EXPECT_EQ(lineage.objection(0, 100), "");
  EXPECT_THAT(fs_.list(kDirectory), ElementsAre("generation-00000000.json", "generation-00000001.json"))
      << "nothing else is left";
}

// A checkpoint of a node that was thought dead came later, with a higher step, and was resumed.
TEST_F(LineageTest, WhatTheRunWentOnWithoutDoesNotCount) {
  save_of(0, 100);
  add(1, 100);
  save_of(1, 120);
  add(2, 110);
  std::vector<Candidate> skipped;
  EXPECT_EQ(newest(&skipped), 100u);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].trouble, Candidate::Trouble::kSuperseded);
  EXPECT_EQ(skipped[0].reason,
            "step-00000120 is of generation 1 of the run, and generation 2 went on from step 110 without it");
  save_of(0, 130);  // the zombie's
  EXPECT_EQ(newest(), 100u);
  save_of(2, 115);
  EXPECT_EQ(newest(), 115u);
  EXPECT_THAT(to_be_pruned(fs_, kDirectory, {.keep = 5}),
              ElementsAre(HasSubstr("step-00000130"), HasSubstr("step-00000120")));
}

// A record said that the run had begun anew, and prune removed all that there was.
TEST_F(LineageTest, WithoutOneThatCountsNoneIsRemoved) {
  save_of(0, 100);
  add(1, 0);
  EXPECT_EQ(newest(), 0u);
  EXPECT_TRUE(prune(fs_, kDirectory, {.keep = 1}).empty());
}

TEST_F(LineageTest, ASupersededOneMakesWayForTheSameStep) {
  save_of(1, 120);
  add(2, 110);
  const std::string path = save_of(2, 120);
  EXPECT_EQ(read_manifest(fs_, path).generation, 2u);
  EXPECT_EQ(newest(), 120u);
}

TEST_F(LineageTest, CheckpointsFromBeforeThereWereRecordsCount) {
  save_of(0, 100);
  EXPECT_EQ(newest(), 100u);
}

// The rename had been made, and the folder could not be synced: the next try took its own record for somebody else's.
TEST_F(LineageTest, ItsOwnRecordIsNotSomebodyElses) {
  const Generation own{.number = 4, .start_step = 7, .created_unix_seconds = 1.5, .members = {{{"host", "a"}}}};
  bool fail = true;
  fs_.set_fault([&](std::string_view call, const std::string&) { return call == "sync_directory" && fail ? 5 : 0; });
  EXPECT_THROW(add_generation(fs_, kDirectory, own), Error);
  fail = false;
  EXPECT_TRUE(add_generation(fs_, kDirectory, own));
  Generation other = own;
  other.members = {{{"host", "b"}}};
  EXPECT_FALSE(add_generation(fs_, kDirectory, other));
}

TEST_F(LineageTest, ADamagedRecordIsNamed) {
  save_of(0, 100);
  add(1, 100);
  const std::string path = std::string(kDirectory) + "/generation-00000001.json";
  const std::string good = fs_.read_file(path);
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                 std::string(R"({"format": "skytrain-generation", "version": 1})")}) {
    overwrite(fs_, path, bad);
    try {
      newest();
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_THAT(error.message(), HasSubstr("generation-00000001.json"));
    }
  }
}

TEST_F(LineageTest, RecordsThatNoCheckpointNeedsArePruned) {
  for (uint64_t number = 1; number <= 9; ++number) {
    add(number, 10 * number);
    save_of(number, 10 * number + 5);
    prune(fs_, kDirectory, {.keep = 2});
  }
  EXPECT_THAT(fs_.list(kDirectory), ElementsAre("generation-00000009.json", "step-00000085", "step-00000095"))
      << "of generation 8 and 9: no one is of an earlier one";
}

struct Killed {};

TEST_F(LineageTest, MakingARecordMayDieAnywhere) {
  bool died = true;
  for (int die_at = 0; died; ++die_at) {
    MemoryFileSystem fs;
    fs.make_directories(kDirectory);
    fs.sync_directory("/run");
    fs.sync_directory("/");
    int calls = 0;
    died = false;
    fs.set_fault([&](std::string_view, const std::string&) -> int {
      if (calls++ < die_at) return 0;
      died = true;
      throw Killed();
    });
    try {
      add_generation(fs, kDirectory, {.number = 3, .start_step = 7});
    } catch (const Killed&) {
    }
    fs.set_fault(nullptr);
    for (int crashed = 0; crashed < 2; ++crashed) {
      const Lineage lineage = Lineage::read(fs, kDirectory);
      EXPECT_TRUE(!lineage.newest() || lineage.generations().at(3).start_step == 7) << die_at;
      fs.crash();
    }
  }
}

}  // namespace
}  // namespace skytrain::checkpoint
