#include "skytrain/data/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/data/bad_samples.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Pictures : public ::testing::Test {
 protected:
  Pictures() {
    put("a/0.png", 40, 20);  // wide
    put("a/1.png", 20, 40);  // tall
    put("a/2.png", 22, 20);  // nearly square
    put("b/3.png", 60, 20);  // wider than any bucket
    put_file(fs_, "/set/b/4.png", "no picture");
    put("b/5.png", 20, 20);
    spec_.path = "/set";
    spec_.format = "imagefolder";
    spec_.size = 8;
    set_ = open_dataset(fs_, spec_, {});
  }
  void put(const std::string& name, int64_t width, int64_t height) {
    put_file(fs_, "/set/" + name, image::encode_png(width, height, image::blocks(width, height)));
  }

  MemoryFileSystem fs_;
  recipe::DatasetSpec spec_;
  std::unique_ptr<Dataset> set_;
  const std::function<bool()> never_ = [] { return false; };
};

TEST_F(Pictures, GoToTheShapeNearestToTheirOwn) {
  const std::vector<image::Size> shapes = {{8, 8}, {12, 6}, {6, 12}, {4, 16}};
  const Buckets buckets(*set_->encoded_pictures(), shapes, never_);
  ASSERT_EQ(buckets.count(), 3u);                        // none is as tall as 4x16
  EXPECT_THAT(buckets.samples(), ElementsAre(3, 2, 1));  // the damaged one is in the first
  EXPECT_EQ(buckets.shape(1), (image::Size{12, 6}));
  EXPECT_EQ(buckets.sample(0, 0), 2u);
  EXPECT_EQ(buckets.sample(0, 1), 4u);
  EXPECT_EQ(buckets.sample(1, 0), 0u);
  EXPECT_EQ(buckets.sample(1, 1), 3u);
  EXPECT_EQ(buckets.sample(2, 0), 1u);
  EXPECT_EQ(buckets.largest(), 1u);  // 72 pixels
}

TEST_F(Pictures, CanBeInterruptedWhileTheirSizesAreRead) {
  try {
    const Buckets buckets(*set_->encoded_pictures(), {{8, 8}}, [] { return true; });
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

TEST(Shapes, AreHeightAndWidth) { EXPECT_EQ(shape_from_text("192x256"), (image::Size{256, 192})); }

TEST(Shapes, RatiosAreComparedAsFactors) {
  // From 1.5, 2 is a factor of 1.33 away, and 1 one of 1.5.
  EXPECT_EQ(nearest_shape({150, 100}, {{100, 100}, {200, 100}}), 1u);
  EXPECT_EQ(nearest_shape({100, 150}, {{100, 100}, {100, 200}}), 1u);
}

TEST_F(Pictures, OfAnyShapeShowTheSameMiddle) {
  const BatchFiller filler(*set_, {}, /*seed=*/1, /*training=*/true);
  const std::vector<uint64_t> samples = {0};
  std::vector<float> image(3 * 6 * 12);
  std::vector<int64_t> labels(1);
  filler.fill(0, samples, image.data(), {.labels = labels.data()}, {.shape = {12, 6}});
  // 40 x 20 covers 12 x 6 exactly: the whole picture is scaled.
  std::vector<float> narrow(3 * 6 * 6);
  filler.fill(0, samples, narrow.data(), {.labels = labels.data()}, {.shape = {6, 6}});
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < 6; ++y)
      for (int64_t x = 0; x < 6; ++x)
        EXPECT_EQ(narrow[static_cast<size_t>((c * 6 + y) * 6 + x)],
                  image[static_cast<size_t>((c * 6 + y) * 12 + 3 + x)]);
}

TEST_F(Pictures, ThatAreDamagedAreLeftOutAndTheOthersMoveUp) {
  const BatchFiller filler(*set_, {}, /*seed=*/1, /*training=*/true);
  const size_t size = 3 * 8 * 8;
  std::vector<uint64_t> samples = {3, 4, 5}, good = {3, 5};
  std::vector<float> images(3 * size), expected(2 * size);
  std::vector<int64_t> labels(3), expected_labels(2);
  BadSamples bad(/*budget=*/1);
  ASSERT_EQ(filler.fill_good(0, samples, images.data(), {.labels = labels.data()}, {}, bad), 2u);
  filler.fill(0, good, expected.data(), {.labels = expected_labels.data()});
  images.resize(2 * size);
  labels.resize(2);
  EXPECT_EQ(images, expected);
  EXPECT_EQ(labels, expected_labels);
  EXPECT_THAT(std::vector(samples.begin(), samples.begin() + 2), ElementsAre(3, 5));
  EXPECT_EQ(bad.count(), 1u);
  EXPECT_THAT(bad.take_new(), ElementsAre(HasSubstr("/set/b/4.png: ")));
  EXPECT_THAT(bad.take_new(), IsEmpty());
  // The same one again, in the next epoch, is no other.
  samples = {4};
  EXPECT_EQ(filler.fill_good(1, samples, images.data(), {.labels = labels.data()}, {}, bad), 0u);
  EXPECT_THAT(bad.take_new(), IsEmpty());
}

TEST(BadSamplesTest, BeyondTheBudgetEndTheRun) {
  BadSamples bad(/*budget=*/1);
  const auto add = [&bad](uint64_t index, ErrorKind kind) -> std::string {
    try {
      throw Error(kind, "file" + std::to_string(index), "is damaged", "delete it");
    } catch (const Error& error) {
      try {
        bad.add(index, error);
        return "";
      } catch (const Error& refusal) {
        return refusal.message();
      }
    }
  };
  EXPECT_EQ(add(7, ErrorKind::kEnvironment), "file7: is damaged\n  delete it");  // not the sample's fault
  EXPECT_EQ(add(7, ErrorKind::kData), "");
  EXPECT_EQ(add(7, ErrorKind::kData), "");
  EXPECT_EQ(add(8, ErrorKind::kData),
            "file8: is damaged\n  it is one more than the 1 that data.skip_bad_samples allows");

  BadSamples later(/*budget=*/2);
  later.from_json(bad.to_json());
  EXPECT_EQ(later.count(), 1u);
  EXPECT_THAT(later.take_new(), IsEmpty());  // was told when it was met
  EXPECT_EQ(later.to_json(), bad.to_json());
}

TEST(BadSamplesTest, WithoutABudgetTheErrorSaysThatThereCouldBeOne) {
  BadSamples bad(/*budget=*/0);
  try {
    try {
      throw Error(ErrorKind::kData, "file", "is damaged");
    } catch (const Error& error) {
      bad.add(1, error);
    }
    ADD_FAILURE() << "was left out";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("file: is damaged\n  to leave such samples out, set data.skip_bad_samples"));
  }
}

}  // namespace
}  // namespace skytrain::data
