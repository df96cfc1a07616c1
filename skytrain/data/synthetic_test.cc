#include "skytrain/data/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::HasSubstr;

recipe::DatasetSpec spec_of(uint64_t samples, int64_t channels = 1, int64_t height = 28, int64_t width = 28) {
  recipe::DatasetSpec spec;
  spec.format = "synthetic";
  spec.samples = samples;
  spec.channels = channels;
  spec.height = height;
  spec.width = width;
  return spec;
}

std::unique_ptr<Dataset> make(const recipe::DatasetSpec& spec, uint64_t seed, bool eval, int64_t classes = 10) {
  MemoryFileSystem fs;
  return open_dataset(fs, spec, {.classes = classes, .seed = seed, .eval = eval});
}

TEST(Synthetic, HasTheAskedForShape) {
  const auto set = make(spec_of(25, 3, 32, 24), 1, false);
  EXPECT_EQ(set->info().samples, 25u);
  EXPECT_EQ(set->info().channels, 3);
  EXPECT_EQ(set->info().height, 32);
  EXPECT_EQ(set->info().width, 24);
  EXPECT_EQ(set->info().classes, 10);
  EXPECT_EQ(set->info().format, "synthetic");
  EXPECT_EQ(set->name(12), "synthetic[12]");
}

TEST(Synthetic, IsAFunctionOfSeedSplitAndIndex) {
  const auto a = make(spec_of(100), 7, false), b = make(spec_of(100), 7, false);
  EXPECT_EQ(a->info().fingerprint, b->info().fingerprint);
  EXPECT_NE(a->info().fingerprint, make(spec_of(100), 8, false)->info().fingerprint);
  EXPECT_NE(a->info().fingerprint, make(spec_of(100), 7, true)->info().fingerprint);
  const auto more = make(spec_of(200), 7, false);  // a longer set begins with the shorter one
  EXPECT_EQ(std::memcmp(pixels_of(*more, 99), pixels_of(*a, 99), 784), 0);
  EXPECT_EQ(more->label(99), a->label(99));
}

TEST(Synthetic, StaysWhatItWas) {  // runs record the fingerprint, and a resumed one compares it
  EXPECT_EQ(make(spec_of(100), 7, false)->info().fingerprint, "2de1f5304c8b7f1b2bc9772b50d76f06");
}

TEST(Synthetic, SamplesOfAClassDiffer) {
  const auto set = make(spec_of(30), 0, false);
  EXPECT_EQ(set->label(0), set->label(10));
  EXPECT_NE(std::memcmp(pixels_of(*set, 0), pixels_of(*set, 10), 784), 0);
  EXPECT_NE(std::memcmp(pixels_of(*set, 10), pixels_of(*set, 20), 784), 0);
}

// A linear rule is enough, so a network that does not reach 95% has a bug.
TEST(Synthetic, NearestClassMeanClassifiesTheOtherSplit) {
  for (uint64_t seed : {0u, 1u, 42u}) {
    const auto train = make(spec_of(2000), seed, false), eval = make(spec_of(500), seed, true);
    std::vector<std::vector<double>> mean(10, std::vector<double>(784, 0));
    for (uint64_t i = 0; i < 2000; ++i) {
      for (size_t p = 0; p < 784; ++p) mean[static_cast<size_t>(train->label(i))][p] += pixels_of(*train, i)[p] / 200.0;
    }
    int right = 0;
    for (uint64_t i = 0; i < 500; ++i) {
      size_t best = 0;
      double least = INFINITY;
      for (size_t c = 0; c < 10; ++c) {
        double distance = 0;
        for (size_t p = 0; p < 784; ++p) distance += std::pow(pixels_of(*eval, i)[p] - mean[c][p], 2);
        if (distance < least) {
          least = distance;
          best = c;
        }
      }
      right += static_cast<int64_t>(best) == eval->label(i);
    }
    EXPECT_GT(right, 490) << "of 500, seed " << seed;
  }
}

TEST(Synthetic, TinyImagesWork) {
  for (int64_t size : {1, 2, 3, 8}) EXPECT_EQ(make(spec_of(3, 1, size, size), 0, false)->info().samples, 3u);
}

TEST(Synthetic, RefusesWhatDoesNotFitInMemory) {
  try {
    make(spec_of(1'000'000), 0, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_THAT(error.message(), HasSubstr("data.train: 1000000 synthetic samples of 1 x 28 x 28"));
    EXPECT_THAT(error.message(), HasSubstr("at most 342392 samples"));
  }
  EXPECT_THROW(make(spec_of(~uint64_t{0}, 4096, 4096, 4096), 0, true), Error);
  EXPECT_THROW(make(spec_of(0), 0, true), Error);
  EXPECT_THROW(make(spec_of(1, 0), 0, true), Error);
}

TEST(OpenDataset, UnknownFormatIsRefusedWithTheKnownOnes) {
  recipe::DatasetSpec spec = spec_of(1);
  spec.format = "sinthetic";
  try {
    make(spec, 0, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_THAT(error.message(),
                HasSubstr("data.eval.format: unknown format \"sinthetic\" (did you mean \"synthetic\"?)"));
    EXPECT_THAT(error.message(), HasSubstr("known: idx, cifar10, imagefolder, webdataset, mds, csv, jsonl, synthetic"));
  }
}

}  // namespace
}  // namespace skytrain::data
