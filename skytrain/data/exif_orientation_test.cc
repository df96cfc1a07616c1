// Sets of pictures that cameras took sideways, opened with exif_orientation.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "skytrain/base/text.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/buckets.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/encoded_pictures.h"

namespace skytrain::data {
namespace {

constexpr int64_t kSize = 9;

class ExifOrientation : public ::testing::Test {
 protected:
  // A set of one picture of tests/testdata/exif.
  std::unique_ptr<Dataset> open(const std::string& name, bool exif_orientation) {
    const std::string folder = "/" + name;
    put_file(fs_, folder + "/class/" + name, FileSystem::real().read_file("tests/testdata/exif/" + name));
    recipe::DatasetSpec spec;
    spec.format = "imagefolder";
    spec.path = folder;
    spec.size = kSize;
    spec.resize = 14;
    spec.exif_orientation = exif_orientation;
    return open_dataset(fs_, spec, {});
  }

  MemoryFileSystem fs_;
};

int largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(int{a[i]} - int{b[i]}));
  return largest;
}

TEST_F(ExifOrientation, IsAppliedWhenAskedFor) {
  const std::vector<uint8_t> upright = copy_of_pixels(*open("upright_6.png", true), 0);
  EXPECT_LE(largest_difference(copy_of_pixels(*open("stored_6.jpg", true), 0), upright), 1);
  EXPECT_GT(largest_difference(copy_of_pixels(*open("stored_6.jpg", false), 0), upright), 20);
}

// The same crop of the upright picture, whichever way it is stored.
TEST_F(ExifOrientation, RandomCropsAreDrawnInTheUprightPicture) {
  recipe::TransformSpec crop, flip, jitter;
  crop.name = "random_resized_crop";
  flip.name = "flip";
  jitter.name = "color_jitter";  // needs all pixels
  for (const auto& transforms : {std::vector{crop, flip}, std::vector{crop, flip, jitter}, std::vector{flip}}) {
    for (const int value : {6, 8}) {
      const auto stored = open(str("stored_", value, ".png"), true),
                 upright = open(str("upright_", value, ".png"), false);
      const BatchFiller ours(*stored, transforms, 3, true), expected(*upright, transforms, 3, true);
      for (uint64_t epoch = 0; epoch < 20; ++epoch) {
        std::vector<float> got(3 * kSize * kSize), wanted(3 * kSize * kSize);
        int64_t label = 0;
        const std::vector<uint64_t> indices = {0};
        ours.fill(epoch, indices, got.data(), {.labels = &label});
        expected.fill(epoch, indices, wanted.data(), {.labels = &label});
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_LE(std::abs(got[i] - wanted[i]), 1.01f / 255) << value << " " << epoch;
      }
    }
  }
}

TEST_F(ExifOrientation, BucketsAreForUprightPictures) {
  const auto lying = open("stored_6.jpg", false), standing = open("stored_6.jpg", true);
  const std::vector<image::Size> shapes = {{12, 8}, {8, 12}};
  const auto never = [] { return false; };
  EXPECT_EQ(Buckets(*lying->encoded_pictures(), shapes, never).shape(0), (image::Size{12, 8}));
  EXPECT_EQ(Buckets(*standing->encoded_pictures(), shapes, never).shape(0), (image::Size{8, 12}));
}

}  // namespace
}  // namespace skytrain::data
