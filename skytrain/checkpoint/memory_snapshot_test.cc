#include "skytrain/checkpoint/memory_snapshot.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "skytrain/checkpoint/checkpoint_test_data.h"
#include "skytrain/checkpoint/file_image.h"

namespace skytrain::checkpoint {
namespace {

class MemorySnapshotTest : public ::testing::Test {
 protected:
  // As a worker does that may die after any of these.
  Manifest write(FileImage& image, uint64_t step) {
    const TestState state(step);
    image.lay_out(state.arrays(), {});
    for (size_t i = 0; i < state.arrays().size(); ++i) {
      const auto& bytes = state.arrays()[i].bytes;
      std::copy(bytes.begin(), bytes.end(), image.array(i).begin());
    }
    Manifest manifest = state.manifest();
    manifest.world = 1;
    manifest.files = {describe_image(image.file())};
    return manifest;
  }

  MemorySnapshot::Files files_ = MemorySnapshot::create();
  MemorySnapshot snapshot_{files_.image.get(), files_.manifest.get()};
};

TEST_F(MemorySnapshotTest, OutlivesItsWriter) {
  EXPECT_FALSE(snapshot_.manifest());
  {
    FileImage image(snapshot_.image());
    snapshot_.publish(write(image, 12));
  }
  const std::optional<Manifest> manifest = snapshot_.manifest();
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->step, 12u);
  FileImage image(snapshot_.image());
  const std::span<const std::byte> content = image.existing(manifest->files[0].bytes);
  EXPECT_TRUE(is_whole(content, manifest->files[0]));
  image.reserve_for(TestState(12).arrays(), {});
  image.touch();
  EXPECT_TRUE(is_whole(image.existing(manifest->files[0].bytes), manifest->files[0])) << "making room changes nothing";
}

TEST_F(MemorySnapshotTest, AWriterThatDiesHalfWayLeavesNoneThatCounts) {
  FileImage image(snapshot_.image());
  const Manifest first = write(image, 12);
  snapshot_.publish(first);
  snapshot_.forget();
  EXPECT_FALSE(snapshot_.manifest());
  // One that forgot to forget, or died in publish().
  snapshot_.publish(first);
  write(image, 13);
  ASSERT_TRUE(snapshot_.manifest());
  EXPECT_FALSE(is_whole(image.file(), snapshot_.manifest()->files[0]));
  ASSERT_EQ(::ftruncate(files_.manifest.get(), 40), 0);
  EXPECT_FALSE(snapshot_.manifest());
}

TEST_F(MemorySnapshotTest, AnImageThatIsTooShortIsNone) {
  FileImage image(snapshot_.image());
  EXPECT_TRUE(image.existing(100).empty());
  FileImage elsewhere;
  EXPECT_TRUE(elsewhere.existing(1).empty());
}

}  // namespace
}  // namespace skytrain::checkpoint
