// Checkpoints of every version that was ever released are kept in tests/testdata/checkpoint and read for ever.
//
// The files of v1 were written by
//   SKYTRAIN_FIXTURE_DIR=tests/testdata/checkpoint/v1 skytrain_checkpoint_test
//       --gtest_also_run_disabled_tests --gtest_filter='*WritesTheFixture'
// and those of v1-tensor-hashes, which has what a training run writes since then (a hash of each tensor, data at a
// multiple of 4096), by '*WritesTheFixtureOfARun'. A new version gets a new folder; the old ones are never written
// again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"
#include "skytrain/checkpoint/file_image.h"

namespace skytrain::checkpoint {
namespace {

TEST(Fixture, Version1IsStillRead) {
  const FileSystem& fs = FileSystem::real();
  std::vector<Candidate> skipped;
  const auto found = find_newest_valid(fs, "tests/testdata/checkpoint/v1", &skipped);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(skipped.empty());
  EXPECT_EQ(found->path, "tests/testdata/checkpoint/v1/step-00000002");
  EXPECT_TRUE(holds(fs, found->path, 2));
  const Manifest manifest = read_manifest(fs, found->path);
  EXPECT_EQ(manifest.version, 1);
  EXPECT_EQ(manifest.world, 2);
  EXPECT_EQ(manifest.state.at("lr"), 0.125);
  EXPECT_EQ(manifest.files[0].xxh128, "9bfeb2d4871131b2d897953b2d8c26ad");
}

TEST(Fixture, Version1WithHashesOfTensorsIsStillRead) {
  const FileSystem& fs = FileSystem::real();
  const std::string folder = "tests/testdata/checkpoint/v1-tensor-hashes";
  const auto found = find_newest_valid(fs, folder, nullptr);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(holds(fs, found->path, 2));
  const Manifest manifest = read_manifest(fs, found->path);
  EXPECT_EQ(manifest.version, 1);
  EXPECT_EQ(manifest.files[0].xxh128, "8a88a9e0f94c88034b88697df910b28d");
  EXPECT_EQ(manifest.files[0].tensors,
            (std::map<std::string, std::string>{{"fc.weight", "597c06a676c55e9b7822cd01b5575325"},
                                                {"mask", "85c85e5eb1bfa0bcbac0c69c15810e04"},
                                                {"optimizer.count", "a3be8f056b603b7b57e4928f60d2e0ea"}}));
}

// Writes what a training run writes.
TEST(Fixture, DISABLED_WritesTheFixtureOfARun) {
  const char* directory = std::getenv("SKYTRAIN_FIXTURE_DIR");
  ASSERT_NE(directory, nullptr);
  const TestState state(2);
  FileImage image;
  image.lay_out(state.arrays(), {{"format", "pt"}, {"step", "2"}});
  for (size_t i = 0; i < state.arrays().size(); ++i) {
    std::copy(state.arrays()[i].bytes.begin(), state.arrays()[i].bytes.end(), image.array(i).begin());
  }
  commit_image(FileSystem::real(), directory, state.manifest(), image.file());
}

TEST(Fixture, DISABLED_WritesTheFixture) {
  const char* directory = std::getenv("SKYTRAIN_FIXTURE_DIR");
  ASSERT_NE(directory, nullptr);
  save(FileSystem::real(), directory, 2);
}

}  // namespace
}  // namespace skytrain::checkpoint
