#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/file_image.h"
#include "skytrain/cli/command_line_test_data.h"

namespace skytrain::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointVerb : public ::testing::Test {
 protected:
  CheckpointVerb() : root_(testing::TempDir() + "skytrain-checkpoint-verb-" + std::to_string(getpid())) {
    std::filesystem::remove_all(root_);
    for (const uint64_t step : {5, 10, 20}) save(root_ + "/checkpoints", step, float(step));
  }
  ~CheckpointVerb() override { std::filesystem::remove_all(root_); }

  // Tensors "bias" [2] and "weight" [3], whose last element is `last`.
  static void save(const std::string& folder, uint64_t step, float last) {
    checkpoint::NamedArray weight{.name = "weight", .shape = {3}}, bias{.name = "bias", .shape = {2}};
    checkpoint::FileImage image;
    image.lay_out(std::vector{weight, bias}, {});
    const float values[] = {1, 2, last};
    std::memcpy(image.array(0).data(), values, sizeof values);
    std::memset(image.array(1).data(), 0, image.array(1).size());
    checkpoint::Manifest manifest;
    manifest.step = step;
    manifest.samples = step * 8;
    checkpoint::commit_image(FileSystem::real(), folder, manifest, image.file());
  }
  static Printed checkpoint(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "checkpoint");
    return run_captured(arguments);
  }
  std::string path(const std::string& step) const { return root_ + "/checkpoints/step-000000" + step; }
  // Turns a bit of the last byte but `from_end`.
  static void flip(const std::string& checkpoint, int from_end) {
    std::fstream file(checkpoint + "/rank-0-of-1.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1 - from_end, std::ios::end);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(-1 - from_end, std::ios::end);
    file.put(byte);
  }

  const std::string root_;
};

TEST_F(CheckpointVerb, ListsARunsCheckpoints) {
  std::filesystem::create_directories(path("30.tmp"));
  const Printed p = checkpoint({"list", root_, "--json"});
  ASSERT_EQ(p.code, 0) << p.err;
  const Json all = parse_json(p.out, "stdout")["checkpoints"];
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["status"], "uncommitted");
  EXPECT_EQ(all[1]["step"], 20);
  EXPECT_EQ(all[1]["samples"], 160);
  EXPECT_EQ(all[1]["status"], "valid");
  EXPECT_THAT(checkpoint({"list", root_}).out, AllOf(HasSubstr("step-00000020"), HasSubstr("160 samples")));
  EXPECT_EQ(parse_json(checkpoint({"list", path("10"), "--json"}).out, "")["checkpoints"].size(), 1u);
  EXPECT_EQ(checkpoint({"list", root_ + "/nothing"}).code, 2);
}

TEST_F(CheckpointVerb, VerifyNamesFileAndTensor) {
  EXPECT_THAT(checkpoint({"verify", root_}).out, HasSubstr("3 checkpoints are valid"));
  flip(path("10"), 1);  // of weight, the last by name
  const Printed p = checkpoint({"verify", root_});
  EXPECT_EQ(p.code, 4);
  EXPECT_THAT(p.err, AllOf(HasSubstr("1 of 3 can't be used"), HasSubstr(path("10") + ": rank-0-of-1.safetensors"),
                           HasSubstr("(tensor weight)"), Not(HasSubstr("bias"))));
  EXPECT_EQ(checkpoint({"verify", path("20")}).code, 0);
  EXPECT_EQ(checkpoint({"verify", path("10")}).code, 4);
  EXPECT_EQ(checkpoint({"verify", path("10"), "--json"}).code, 4);
  flip(path("20"), 5 * 4 + 100);  // in the header's padding
  EXPECT_THAT(checkpoint({"verify", path("20")}).err, HasSubstr("(its header)"));
}

TEST_F(CheckpointVerb, DiffTellsWhatDiffersAndByHowMuch) {
  const Printed same = checkpoint({"diff", path("10"), path("10"), "--json"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(parse_json(same.out, "")["equal"], true);
  const Json json = parse_json(checkpoint({"diff", path("10"), path("20"), "--json"}).out, "");
  EXPECT_EQ(json["equal"], false);
  ASSERT_EQ(json["differences"].size(), 1u);
  EXPECT_EQ(json["differences"][0]["tensor"], "weight");
  EXPECT_EQ(json["differences"][0]["elements"], 1);
  EXPECT_EQ(json["differences"][0]["most"], 10);
  EXPECT_THAT(checkpoint({"diff", path("10"), path("20")}).out, HasSubstr("1 element differs, by 10 at most"));
  EXPECT_EQ(checkpoint({"diff", path("10"), root_}).code, 2);
}

TEST_F(CheckpointVerb, PruneKeepsTheNewestThatAreWhole) {
  EXPECT_EQ(checkpoint({"prune", root_}).code, 2);  // how many, it must be told
  EXPECT_THAT(checkpoint({"prune", root_, "--keep", "2", "--dry-run"}).out, HasSubstr("step-00000005"));
  EXPECT_TRUE(std::filesystem::exists(path("05")));
  flip(path("20"), 1);
  EXPECT_EQ(checkpoint({"prune", root_, "--keep", "1"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("20")));  // damaged: for a person to look at
  EXPECT_TRUE(std::filesystem::exists(path("10")));  // the newest that is whole
  EXPECT_FALSE(std::filesystem::exists(path("05")));
}

// Those of keep_every went with the others.
TEST_F(CheckpointVerb, PruneSparesWhatTheRunKeepsForGood) {
  const auto recipe = [this](const std::string& checkpoint) {
    std::ofstream(root_ + "/recipe.json") << R"({"checkpoint": )" << checkpoint << "}";
  };
  recipe(R"({"keep_every": "5 steps", "best": null})");
  EXPECT_THAT(checkpoint({"prune", root_, "--keep", "1"}).out, HasSubstr("nothing to remove"));
  recipe(R"({"keep_every": "1 epochs"})");
  EXPECT_EQ(checkpoint({"prune", root_, "--keep", "1"}).code, 2);
  EXPECT_EQ(checkpoint({"prune", root_, "--keep", "1", "--also-kept"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("20")));
  EXPECT_FALSE(std::filesystem::exists(path("10")));
}

TEST_F(CheckpointVerb, WhatIsNoRunIsRefused) {
  std::filesystem::create_directories(root_ + "/runs/name/time");
  for (const char* verb : {"list", "verify"}) EXPECT_EQ(checkpoint({verb, root_ + "/runs"}).code, 2);
  EXPECT_EQ(checkpoint({"prune", root_ + "/runs", "--keep", "1"}).code, 2);
}

// An older one was copied, and nobody said so.
TEST_F(CheckpointVerb, CpNamesTheNewerOnesThatItPassesOver) {
  flip(path("20"), 1);
  const Printed p = checkpoint({"cp", root_, root_ + "/backup"});
  EXPECT_EQ(p.code, 0);
  EXPECT_THAT(p.out, HasSubstr("step-00000010"));
  EXPECT_THAT(p.err, HasSubstr("passed over " + path("20")));
}

TEST_F(CheckpointVerb, CpCopiesNoDamage) {
  const std::string to = root_ + "/backup";
  const Printed p = checkpoint({"cp", root_, to, "--json"});
  ASSERT_EQ(p.code, 0) << p.err;
  EXPECT_EQ(parse_json(p.out, "")["path"], to + "/step-00000020");
  EXPECT_EQ(checkpoint({"verify", to}).code, 0);
  EXPECT_EQ(checkpoint({"cp", path("20"), to}).code, 0);  // again: it is there
  flip(path("10"), 1);
  EXPECT_EQ(checkpoint({"cp", path("10"), to}).code, 4);
  EXPECT_FALSE(std::filesystem::exists(to + "/step-00000010"));
  EXPECT_FALSE(std::filesystem::exists(to + "/step-00000010.tmp"));
  // Another checkpoint of the same step is not replaced.
  save(root_ + "/other", 20, 99);
  EXPECT_EQ(checkpoint({"cp", root_ + "/other/step-00000020", to}).code, 4);
  EXPECT_EQ(checkpoint({"verify", to}).code, 0);
}

}  // namespace
}  // namespace skytrain::cli
