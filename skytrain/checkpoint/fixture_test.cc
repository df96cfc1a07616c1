// Checkpoints of every version that was ever released are kept in tests/testdata/checkpoint and read for ever.
//
// The files of version 1 were written by
//   SKYTRAIN_FIXTURE_DIR=tests/testdata/checkpoint/v1 skytrain_checkpoint_test
//       --gtest_also_run_disabled_tests --gtest_filter='*WritesTheFixture'
// A new version gets a new folder; the old ones are never written again.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/checkpoint_test_data.h"

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

TEST(Fixture, DISABLED_WritesTheFixture) {
  const char* directory = std::getenv("SKYTRAIN_FIXTURE_DIR");
  ASSERT_NE(directory, nullptr);
  save(FileSystem::real(), directory, 2);
}

}  // namespace
}  // namespace skytrain::checkpoint
