#include "skytrain/data/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::ElementsAre;

TEST(Inspection, CountsSizesKindsBrokenAndDuplicates) {
  MemoryFileSystem fs;
  const auto png = [](int64_t width, int64_t height, unsigned seed) {
    return image::encode_png(width, height, image::noise(width, height, 3, seed));
  };
  put_file(fs, "/set/cat/1.png", png(10, 20, 1));
  put_file(fs, "/set/cat/2.png", png(30, 8, 2));
  put_file(fs, "/set/cat/3.png", png(10, 20, 1));
  put_file(fs, "/set/dog/1.jpg", image::encode_jpeg(12, 9, image::blocks(12, 9)));
  put_file(fs, "/set/dog/2.jpg", image::encode_jpeg(12, 9, image::blocks(12, 9)).substr(0, 200));
  put_file(fs, "/set/dog/3.jpg", png(30, 8, 2));
  put_file(fs, "/set/dog/4.png", png(30, 8, 2));
  recipe::DatasetSpec spec;
  spec.path = "/set";
  spec.format = "imagefolder";
  spec.size = 4;
  uint64_t done = 0;
  const auto set = open_dataset(fs, spec, {});
  const Inspection found = inspect(
      *set, [&](uint64_t n) { done = n; }, nullptr);
  EXPECT_EQ(done, 7u);
  EXPECT_THAT(found.per_class, ElementsAre(3, 4));
  EXPECT_EQ(found.jpeg, 1u);
  EXPECT_EQ(found.png, 5u);
  EXPECT_EQ(found.width.least, 10u);
  EXPECT_EQ(found.width.median, 12u);
  EXPECT_EQ(found.width.most, 30u);
  EXPECT_EQ(found.height.least, 8u);
  EXPECT_EQ(found.height.most, 20u);
  EXPECT_EQ(found.bytes.least, 200u);
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0].name, "dog/2.jpg");
  EXPECT_THAT(found.duplicates, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 5, 6)));
  EXPECT_EQ(found.contradictions, 1u);
  EXPECT_THROW(inspect(*set, nullptr, [] { return true; }), Error);
}

TEST(Inspection, OfOtherSetsTellsTheClasses) {
  MemoryFileSystem fs;
  put_file(fs, "/x.csv", "a,y\n1,0\n2,1\n3,1\n");
  recipe::DatasetSpec spec;
  spec.path = "/x.csv";
  spec.format = "csv";
  spec.target = {"y"};
  EXPECT_THAT(inspect(*open_dataset(fs, spec, {}), nullptr, nullptr).per_class, ElementsAre(1, 2));
}

}  // namespace
}  // namespace skytrain::data
