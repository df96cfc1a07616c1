#include "skytrain/data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <thread>
#include <tuple>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/memory_dataset.h"

namespace skytrain::data {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Dataset> make(uint64_t samples, int64_t channels, int64_t height, int64_t width) {
  recipe::DatasetSpec spec;
  spec.format = "synthetic";
  spec.samples = samples;
  spec.channels = channels;
  spec.height = height;
  spec.width = width;
  MemoryFileSystem fs;
  return open_dataset(fs, spec, {.classes = 10, .seed = 3});
}

recipe::TransformSpec normalize(std::vector<double> mean, std::vector<double> std) {
  recipe::TransformSpec t;
  t.name = "normalize";
  t.mean = std::move(mean);
  t.std = std::move(std);
  return t;
}

recipe::TransformSpec pad_crop(int64_t pad) {
  recipe::TransformSpec t;
  t.name = "pad_crop";
  t.pad = pad;
  return t;
}

recipe::TransformSpec flip(double p) {
  recipe::TransformSpec t;
  t.name = "flip";
  t.p = p;
  return t;
}

struct Batch {
  std::vector<float> images;
  std::vector<int64_t> labels;
};

Batch fill(const BatchFiller& filler, const Dataset& set, uint64_t epoch, const std::vector<uint64_t>& samples) {
  const auto& info = set.info();
  Batch batch;
  batch.images.assign(samples.size() * static_cast<size_t>(info.channels * info.height * info.width), -99.f);
  batch.labels.assign(samples.size(), -1);
  filler.fill(epoch, samples, batch.images.data(), {.labels = batch.labels.data()});
  return batch;
}

// The image shifted by (down, right) with black borders, mirrored, then normalised: the straightforward way.
std::vector<float> reference(const Dataset& set, uint64_t sample, int64_t down, int64_t right,
                             const std::vector<double>& mean, const std::vector<double>& std, bool mirrored = false) {
  const auto& info = set.info();
  std::vector<float> out;
  for (int64_t c = 0; c < info.channels; ++c) {
    for (int64_t y = 0; y < info.height; ++y) {
      for (int64_t x = 0; x < info.width; ++x) {
        const int64_t from_y = y + down, from_x = (mirrored ? info.width - 1 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < info.height && from_x >= 0 && from_x < info.width;
        const uint8_t pixel = inside ? pixels_of(set, sample)[(c * info.height + from_y) * info.width + from_x] : 0;
        out.push_back((static_cast<float>(pixel) / 255.0f - static_cast<float>(mean[static_cast<size_t>(c)])) /
                      static_cast<float>(std[static_cast<size_t>(c)]));
      }
    }
  }
  return out;
}

TEST(BatchFiller, ScalesToUnitRangeWithoutTransforms) {
  const auto set = make(4, 1, 5, 6);
  const Batch batch = fill(BatchFiller(*set, {}, 0, true), *set, 0, {2, 0});
  for (size_t p = 0; p < 30; ++p) {
    EXPECT_EQ(batch.images[p], static_cast<float>(pixels_of(*set, 2)[p]) / 255.0f);
    EXPECT_EQ(batch.images[30 + p], static_cast<float>(pixels_of(*set, 0)[p]) / 255.0f);
  }
  EXPECT_EQ(batch.labels, (std::vector<int64_t>{2, 0}));
}

TEST(BatchFiller, NormalizesEachChannelAsTorchvisionDoes) {
  const std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  const auto set = make(3, 3, 7, 5);
  const Batch batch = fill(BatchFiller(*set, {normalize(mean, std)}, 0, false), *set, 0, {1});
  EXPECT_EQ(batch.images, reference(*set, 1, 0, 0, mean, std));  // bit for bit
}

TEST(BatchFiller, OneValueServesAllChannels) {
  const auto set = make(3, 3, 7, 5);
  const Batch one = fill(BatchFiller(*set, {normalize({0.5}, {0.25})}, 0, false), *set, 0, {1});
  const Batch three = fill(BatchFiller(*set, {normalize({.5, .5, .5}, {.25, .25, .25})}, 0, false), *set, 0, {1});
  EXPECT_EQ(one.images, three.images);
}

TEST(BatchFiller, CropsAreBlackBorderedShiftsAndAllOfThemOccur) {
  const std::vector<double> mean = {0.1, 0.2}, std = {0.3, 0.4};
  for (const auto& [height, width, pad] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{6, 5, 2}, {2, 3, 4}}) {
    const auto set = make(20, 2, height, width);
    const BatchFiller filler(*set, {pad_crop(pad), normalize(mean, std)}, 5, true);
    std::map<std::pair<int64_t, int64_t>, int> seen;
    const int64_t places = (2 * pad + 1) * (2 * pad + 1);
    for (uint64_t epoch = 0; epoch < 60; ++epoch) {
      for (uint64_t sample = 0; sample < 20; ++sample) {
        const Batch batch = fill(filler, *set, epoch, {sample});
        int matches = 0;
        for (int64_t down = -pad; down <= pad; ++down) {
          for (int64_t right = -pad; right <= pad; ++right) {
            if (batch.images != reference(*set, sample, down, right, mean, std)) continue;
            ++matches;
            ++seen[{down, right}];
          }
        }
        ASSERT_GE(matches, 1) << "epoch " << epoch << ", sample " << sample << ": no shift of the image";
      }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), places);
  }
}

TEST(BatchFiller, CropDependsOnSeedEpochAndSampleOnly) {
  const auto set = make(50, 1, 28, 28);
  std::vector<uint64_t> forward(50), backward(50);
  for (uint64_t i = 0; i < 50; ++i) forward[i] = backward[49 - i] = i;
  const BatchFiller filler(*set, {pad_crop(4)}, 5, true);
  const Batch a = fill(filler, *set, 3, forward), b = fill(filler, *set, 3, backward);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(std::equal(a.images.begin() + static_cast<ptrdiff_t>(i * 784),
                           a.images.begin() + static_cast<ptrdiff_t>((i + 1) * 784),
                           b.images.begin() + static_cast<ptrdiff_t>((49 - i) * 784)));
  }
  EXPECT_NE(fill(filler, *set, 4, forward).images, a.images);
  EXPECT_NE(fill(BatchFiller(*set, {pad_crop(4)}, 6, true), *set, 3, forward).images, a.images);
}

TEST(BatchFiller, FlipMirrorsLeftAndRight) {
  const auto set = make(4, 3, 5, 6);
  const std::vector<double> mean = {.1, .2, .3}, std = {.5, .6, .7};
  const Batch batch = fill(BatchFiller(*set, {flip(1), normalize(mean, std)}, 0, true), *set, 0, {2});
  EXPECT_EQ(batch.images, reference(*set, 2, 0, 0, mean, std, /*mirrored=*/true));
  const Batch none = fill(BatchFiller(*set, {flip(0), normalize(mean, std)}, 0, true), *set, 0, {2});
  EXPECT_EQ(none.images, reference(*set, 2, 0, 0, mean, std));
}

TEST(BatchFiller, FlipComesWithItsProbability) {
  const auto set = make(500, 1, 3, 4);
  for (const double p : {0.1, 0.5, 0.9}) {
    const BatchFiller filler(*set, {flip(p)}, 7, true);
    int mirrored = 0;
    for (uint64_t epoch = 0; epoch < 4; ++epoch) {
      for (uint64_t i = 0; i < 500; ++i) {
        const std::vector<float> images = fill(filler, *set, epoch, {i}).images;
        const bool straight = images == reference(*set, i, 0, 0, {0}, {1});
        ASSERT_NE(straight, images == reference(*set, i, 0, 0, {0}, {1}, true));
        mirrored += !straight;
      }
    }
    EXPECT_NEAR(mirrored / 2000.0, p, 5 * std::sqrt(p * (1 - p) / 2000)) << "probability " << p;
  }
}

// Crop and flip with streams that were not independent would show some of these pairs only.
TEST(BatchFiller, CropAndFlipAreIndependent) {
  const auto set = make(40, 1, 6, 5);
  const BatchFiller both(*set, {pad_crop(1), flip(0.5)}, 5, true), crop(*set, {pad_crop(1)}, 5, true);
  std::map<std::tuple<int64_t, int64_t, bool>, int> seen;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint64_t sample = 0; sample < 40; ++sample) {
      const std::vector<float> images = fill(both, *set, epoch, {sample}).images;
      const std::vector<float> cropped = fill(crop, *set, epoch, {sample}).images;
      int matches = 0;
      for (int64_t down = -1; down <= 1; ++down) {
        for (int64_t right = -1; right <= 1; ++right) {
          // The flip leaves the crop as it is without one.
          if (cropped != reference(*set, sample, down, right, {0}, {1})) continue;
          for (const bool mirrored : {false, true}) {
            if (images != reference(*set, sample, down, right, {0}, {1}, mirrored)) continue;
            ++matches;
            ++seen[{down, right, mirrored}];
          }
        }
      }
      ASSERT_GE(matches, 1) << "epoch " << epoch << ", sample " << sample;
    }
  }
  EXPECT_EQ(seen.size(), 18u);
}

TEST(BatchFiller, FlipStaysWhatItWas) {  // a resumed run draws again what the interrupted one drew
  const auto set = make(64, 1, 1, 2);
  const BatchFiller filler(*set, {flip(0.5)}, 42, true);
  uint64_t bits = 0;
  for (uint64_t i = 0; i < 64; ++i) {
    const bool straight = fill(filler, *set, 3, {i}).images == reference(*set, i, 0, 0, {0}, {1});
    bits = bits << 1 | (straight ? 0 : 1);
  }
  EXPECT_EQ(bits, 0xb9c1a675dbdae3e4u);
}

TEST(BatchFiller, EvaluationDoesNotCropOrFlip) {
  const auto set = make(20, 1, 8, 8);
  const BatchFiller filler(*set, {pad_crop(4), flip(1)}, 5, /*training=*/false);
  const std::vector<double> zero = {0}, one = {1};
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(fill(filler, *set, i, {i}).images, reference(*set, i, 0, 0, zero, one));
}

TEST(BatchFiller, EmptyBatchTouchesNothing) {
  const auto set = make(2, 1, 8, 8);
  BatchFiller(*set, {}, 0, true).fill(0, {}, nullptr, {});
}

// Rows of features, with a class or with values, made by hand.
class Rows final : public Dataset {
 public:
  Rows(int64_t features, std::vector<float> data, std::vector<float> values)
      : data_(std::move(data)), values_(std::move(values)) {
    info_.samples = data_.size() / static_cast<size_t>(features);
    info_.elements = Elements::kFloat32;
    info_.channels = features;
    info_.height = info_.width = 1;
    info_.values = static_cast<int64_t>(values_.size() / info_.samples);
  }
  const DatasetInfo& info() const override { return info_; }
  const float* features(uint64_t i) const override { return data_.data() + i * static_cast<uint64_t>(info_.channels); }
  const float* values(uint64_t i) const override { return values_.data() + i * static_cast<uint64_t>(info_.values); }
  int64_t label(uint64_t i) const override { return static_cast<int64_t>(10 + i); }
  std::string name(uint64_t) const override { return ""; }

 private:
  DatasetInfo info_;
  std::vector<float> data_, values_;
};

TEST(BatchFiller, FeaturesAreNotScaledAndValuesAreCopied) {
  const Rows rows(3, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0.5f, -1, 1.5f, -2, 2.5f, -3});
  std::vector<float> images(6), values(4);
  BatchFiller(rows, {}, 0, true).fill(0, std::vector<uint64_t>{2, 0}, images.data(), {.values = values.data()});
  EXPECT_EQ(images, (std::vector<float>{7, 8, 9, 1, 2, 3}));
  EXPECT_EQ(values, (std::vector<float>{2.5f, -3, 0.5f, -1}));
}

TEST(BatchFiller, FeaturesAreNormalizedOneByOne) {
  const Rows rows(2, {1, 10, 3, 30}, {});
  std::vector<float> images(4);
  std::vector<int64_t> labels(2);
  BatchFiller(rows, {normalize({1, 10}, {2, 4}), normalize({0.5}, {0.25})}, 0, true)
      .fill(0, std::vector<uint64_t>{1, 0}, images.data(), {.labels = labels.data()});
  EXPECT_EQ(images, (std::vector<float>{2, 18, -2, -2}));
  EXPECT_EQ(labels, (std::vector<int64_t>{11, 10}));
}

TEST(BatchFiller, ManyThreadsFillTheSame) {
  const auto set = make(64, 3, 8, 8);
  const BatchFiller filler(*set, {pad_crop(2), flip(0.5)}, 5, true);
  std::vector<uint64_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<float> expected = fill(filler, *set, 1, all).images;
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  threads.reserve(got.size());
  for (auto& images : got) threads.emplace_back([&] { images = fill(filler, *set, 1, all).images; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& images : got) EXPECT_EQ(images, expected);
}

std::string refusal(const Dataset& set, const std::vector<recipe::TransformSpec>& transforms) {
  try {
    BatchFiller(set, transforms, 0, true);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    return error.message();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

TEST(BatchFiller, RefusesTransformsThatDoNotFit) {
  const auto set = make(2, 1, 8, 8);
  EXPECT_THAT(refusal(*set, {pad_crop(1), normalize({.1, .2, .3}, {1})}),
              HasSubstr("data.transforms[1].normalize.mean: has 3 values, but the images have 1 channel"));
  EXPECT_THAT(refusal(*set, {normalize({.1}, {0})}), HasSubstr("data.transforms[0].normalize.std: must be above 0"));
  EXPECT_THAT(refusal(*set, {normalize({.1}, {1e-60})}), HasSubstr("std"));  // 0 in float32
  EXPECT_THAT(refusal(*set, {normalize({}, {1})}), HasSubstr("has 0 values"));
  EXPECT_THAT(refusal(*set, {pad_crop(-1)}), HasSubstr("pad: is -1"));
  EXPECT_THAT(refusal(*set, {pad_crop(1), pad_crop(1)}), HasSubstr("second random crop"));
  EXPECT_THAT(refusal(*set, {flip(1.5)}), HasSubstr("data.transforms[0].flip.p: is 1.5, expected 0..1"));
  EXPECT_THAT(refusal(*set, {flip(0.5), flip(0.5)}), HasSubstr("data.transforms[1].flip: appears twice"));
  recipe::TransformSpec misspelt;
  misspelt.name = "normalise";
  EXPECT_THAT(refusal(*set, {misspelt}), HasSubstr("unknown transform \"normalise\" (did you mean \"normalize\"?)"));
}

TEST(BatchFiller, RefusesTransformsOfPicturesForFeatures) {
  const Rows rows(2, {1, 10, 3, 30}, {});
  EXPECT_THAT(refusal(rows, {flip(0.5)}), HasSubstr("data.transforms[0].flip: is for pictures"));
  EXPECT_THAT(refusal(rows, {pad_crop(1)}), HasSubstr("data.transforms[0].pad_crop: is for pictures"));
  EXPECT_THAT(refusal(rows, {normalize({1, 2, 3}, {1})}),
              HasSubstr("normalize.mean: has 3 values, but the samples have 2 features"));
}

}  // namespace
}  // namespace skytrain::data
