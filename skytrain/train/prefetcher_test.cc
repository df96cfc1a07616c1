#include "skytrain/train/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::train {
namespace {

constexpr uint64_t kSamples = 103, kBatch = 24, kSlot = 5, kEpochs = 3;

// Each sample is a class of its own, so that labels tell which samples a batch holds.
class Numbered final : public data::Dataset {
 public:
  explicit Numbered(uint64_t damaged = ~uint64_t{0}) : damaged_(damaged) {
    info_.samples = kSamples;
    info_.channels = 1;
    info_.height = info_.width = kSide;
    info_.classes = int64_t(kSamples);
  }
  const data::DatasetInfo& info() const override { return info_; }
  const uint8_t* pixels(uint64_t index, data::Scratch& scratch) const override {
    if (index == damaged_) throw Error(ErrorKind::kData, name(index), "is damaged");
    uint8_t* pixels = scratch.sample.room(kSide * kSide, "sample");
    for (uint64_t i = 0; i < kSide * kSide; ++i) pixels[i] = uint8_t(2 * index + i);
    return pixels;
  }
  int64_t label(uint64_t index) const override { return int64_t(index); }
  std::string name(uint64_t index) const override { return str("numbered[", index, "]"); }

 private:
  static constexpr uint64_t kSide = 4;
  uint64_t damaged_;
  data::DatasetInfo info_;
};

recipe::Recipe recipe_of_run() {
  recipe::Recipe recipe;
  recipe.seed = 11;
  recipe.model.classes = int64_t(kSamples);
  recipe::TransformSpec crop;
  crop.name = "pad_crop";
  crop.pad = 2;
  recipe.data.transforms = {crop};
  return recipe;
}

// What a run has seen: by epoch and sample, the pixels. A step that was taken twice, because a kill came before its
// checkpoint, counts once.
struct Ledger {
  std::map<std::pair<uint64_t, int64_t>, at::Tensor> pixels;
  uint64_t again = 0;

  void note(uint64_t epoch, const at::Tensor& images, const at::Tensor& target, bool redone) {
    for (int64_t i = 0; i < images.size(0); ++i) {
      const std::pair key(epoch, target[i].item<int64_t>());
      const auto found = pixels.find(key);
      if (found == pixels.end()) {
        pixels.emplace(key, images[i].clone());
      } else {
        EXPECT_TRUE(redone) << "sample " << key.second << " of epoch " << epoch << " twice";
        EXPECT_TRUE(found->second.equal(images[i])) << "sample " << key.second << " of epoch " << epoch;
        ++again;
      }
    }
  }
};

// Takes step `step` as `replicas` threads do.
void take_step(Prefetcher& prefetcher, const data::Slots& slots, uint64_t step, uint64_t replicas, Ledger& ledger,
               bool redone) {
  std::vector<std::vector<std::pair<uint64_t, Batch>>> seen(replicas);
  std::vector<std::thread> threads;
  for (uint64_t replica = 0; replica < replicas; ++replica)
    threads.emplace_back([&, replica] {
      Batch batch;
      for (const data::Slot& slot : slots.deal(step, replica, replicas)) {
        if (slot.count == 0) continue;
        prefetcher.take(step, slot, batch.images, batch.target);
        ASSERT_EQ(batch.images.size(0), int64_t(slot.count));
        seen[replica].emplace_back(slot.epoch, Batch{batch.images.clone(), batch.target.clone()});
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_replica : seen)
    for (const auto& [epoch, batch] : of_replica) ledger.note(epoch, batch.images, batch.target, redone);
}

TEST(Prefetcher, EachSampleOnceAnEpochWhateverTheWorldAndItsEnds) {
  const Numbered dataset;
  const DataFeed feed(dataset, recipe_of_run());
  const data::Slots slots(kSamples, kBatch, kSlot);
  const uint64_t steps = kEpochs * slots.steps_per_epoch();
  Ledger ledger;
  std::minstd_rand random(5);
  const std::vector<uint64_t> worlds = {1, 3, 2, 4};
  uint64_t step = 0, seen = 0;
  for (size_t life = 0; step < steps; ++life) {
    const uint64_t world = worlds[life % worlds.size()];
    const int threads = int(1 + random() % 3);
    Prefetcher prefetcher(feed, slots,
                          {.first_step = step,
                           .end_step = steps,
                           .replicas = int(world),
                           .least_threads = threads,
                           .most_threads = threads});
    const uint64_t taken = 1 + random() % 4;
    for (uint64_t i = 0; i < taken && step + i < steps; ++i) {
      take_step(prefetcher, slots, step + i, world, ledger, /*redone=*/step + i < seen);
      seen = std::max(seen, step + i + 1);
    }
    // Killed: what was made ahead is lost, and sometimes the last step too.
    step = std::min(steps, step + taken) - (life % 3 == 1 && step + taken < steps ? 1 : 0);
  }
  EXPECT_EQ(ledger.pixels.size(), kEpochs * kSamples);
  EXPECT_GT(ledger.again, 0u);
  // Augmentation differs from epoch to epoch.
  uint64_t different = 0;
  for (int64_t sample = 0; sample < int64_t(kSamples); ++sample)
    different += !ledger.pixels.at({0, sample}).equal(ledger.pixels.at({1, sample}));
  EXPECT_GT(different, kSamples / 2);
}

TEST(Prefetcher, ADamagedSampleIsToldByTheStepThatNeedsIt) {
  const Numbered dataset(/*damaged=*/17);
  const DataFeed feed(dataset, recipe_of_run());
  const data::Slots slots(kSamples, kBatch, kSlot);
  Prefetcher prefetcher(feed, slots, {.first_step = 0, .end_step = slots.steps_per_epoch(), .replicas = 1});
  uint64_t failures = 0;
  Batch batch;
  for (uint64_t step = 0; step < slots.steps_per_epoch(); ++step)
    for (const data::Slot& slot : slots.deal(step, 0, 1)) {
      if (slot.count == 0) continue;
      std::vector<uint64_t> samples;
      feed.samples_of(slot, samples);
      const bool damaged = std::find(samples.begin(), samples.end(), 17) != samples.end();
      try {
        prefetcher.take(step, slot, batch.images, batch.target);
        EXPECT_FALSE(damaged);
      } catch (const Error& error) {
        EXPECT_TRUE(damaged);
        EXPECT_EQ(error.where(), "numbered[17]");
        ++failures;
      }
    }
  EXPECT_EQ(failures, 1u);
}

}  // namespace
}  // namespace skytrain::train
