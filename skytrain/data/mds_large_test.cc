// Sets of more samples than are kept in memory: what is read of them, and when it is checked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "skytrain/base/error.h"
#include "skytrain/base/process.h"
#include "skytrain/data/batch.h"
#include "skytrain/data/mds.h"
#include "skytrain/data/order.h"
#include "skytrain/data/sparse_mds_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::HasSubstr;

// Counts what is read of another file system, which it leaves as it is.
class CountingFileSystem final : public FileSystem {
 public:
  explicit CountingFileSystem(FileSystem& fs) : fs_(fs) {}

  std::optional<FileInfo> stat(const std::string& path) const override { return fs_.stat(path); }
  std::string read_file(const std::string& path) const override {
    ++files;
    return fs_.read_file(path);
  }
  void read_range(const std::string& path, uint64_t offset, std::span<std::byte> out) const override {
    ++ranges;
    bytes += out.size();
    fs_.read_range(path, offset, out);
  }
  std::vector<std::string> list(const std::string& directory) const override { return fs_.list(directory); }
  std::unique_ptr<WritableFile> open_write(const std::string& path, Mode) override { refuse(path); }
  void make_directories(const std::string& path) override { refuse(path); }
  bool make_directory(const std::string& path) override { refuse(path); }
  void rename(const std::string& from, const std::string&) override { refuse(from); }
  bool rename_if_absent(const std::string& from, const std::string&) override { refuse(from); }
  void remove_file(const std::string& path) override { refuse(path); }
  void remove_tree(const std::string& path) override { refuse(path); }
  void truncate(const std::string& path, uint64_t) override { refuse(path); }
  void sync_directory(const std::string& path) override { refuse(path); }
  uint64_t free_bytes(const std::string& path) const override { return fs_.free_bytes(path); }

  mutable std::atomic<uint64_t> files{0}, ranges{0}, bytes{0};

 private:
  [[noreturn]] static void refuse(const std::string& path) { throw Error(ErrorKind::kInternal, path, "is written to"); }

  FileSystem& fs_;
};

std::string picture(uint8_t value) { return image::encode_png(4, 4, std::string(48, static_cast<char>(value))); }

std::unique_ptr<Mds> open_mds(const FileSystem& fs, const std::string& path, const OpenOptions& options,
                              const Mds::Limits& limits = {}) {
  recipe::DatasetSpec spec;
  spec.path = path;
  spec.format = "mds";
  spec.size = 4;
  return Mds::open(fs, spec, options, limits);
}

class LargeMds : public ::testing::Test {
 protected:
  static constexpr Mds::Limits kLarge{.samples_in_memory = 1};

  std::unique_ptr<Mds> open(int64_t classes = 10) { return open_mds(fs_, "/set", {.classes = classes}, kLarge); }
  // Of a set that opens.
  std::string refusal(uint64_t index, int64_t classes = 10) {
    const auto set = open(classes);
    Scratch scratch;
    std::string message;
    try {
      set->encoded(index, scratch);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      message = error.message();
    }
    EXPECT_FALSE(message.empty());
    try {
      set->label(index);
      ADD_FAILURE() << "its class is given";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), message);
    }
    return message;
  }

  Json put_three(bool packed = false) {
    return put_mds(fs_, "/set", {{mds_sample(picture(1), 5), mds_sample(picture(2), 6)}, {mds_sample(picture(3), 7)}},
                   packed);
  }

  MemoryFileSystem fs_;
};

TEST_F(LargeMds, SamplesAreThoseOfASmallOne) {
  for (const bool packed : {false, true}) {
    fs_.remove_tree("/set");
    put_three(packed);
    const auto set = open(), small = open_mds(fs_, "/set", {});
    ASSERT_EQ(set->info().samples, 3u);
    EXPECT_EQ(set->info().classes, 10) << "labels are below it, whatever they are";
    for (const uint64_t i : {2, 0, 1}) {
      EXPECT_EQ(set->label(i), 5 + static_cast<int64_t>(i)) << "before anything of it was read";
      EXPECT_EQ(copy_of_pixels(*set, i), copy_of_pixels(*small, i));
      EXPECT_EQ(set->label(i), 5 + static_cast<int64_t>(i)) << "as it was read with its picture";
      EXPECT_EQ(set->encoded_bytes(i), small->encoded_bytes(i));
      EXPECT_EQ(set->name(i), small->name(i));
    }
  }
}

TEST_F(LargeMds, NothingOfShardsIsReadWhenItOpens) {
  put_three();
  const CountingFileSystem counting(fs_);
  const auto set = open_mds(counting, "/set", {.classes = 10}, kLarge);
  EXPECT_EQ(counting.files, 1u);
  EXPECT_EQ(counting.ranges, 0u);
  Scratch scratch;
  set->encoded(0, scratch);
  EXPECT_EQ(counting.ranges, 3u) << "the shard's number of samples, two offsets, the sample";
  set->encoded(1, scratch);
  EXPECT_EQ(counting.ranges, 5u);
  set->label(1);
  EXPECT_EQ(counting.ranges, 5u) << "its class came with it";
}

TEST_F(LargeMds, ClassesAreCountedWhereTheyAreWanted) {
  put_three();
  EXPECT_EQ(open(0)->info().classes, 8);
  EXPECT_EQ(open_mds(fs_, "/set", {.count_classes = false}, kLarge)->info().classes, 0);
  std::string shard = fs_.read_file("/set/shard.00001.mds");
  shard.replace(4, 4, "\xff\xff\xff\xff");
  put_file(fs_, "/set/shard.00001.mds", shard);
  EXPECT_THROW(open(0), Error) << "and everything is checked";
}

// Two threads may be at the same sample; what one has read is not the other set's.
TEST_F(LargeMds, ClassesOfTwoSetsAndThreadsAreTheirOwn) {
  put_three();
  put_mds(fs_, "/other", {{mds_sample(picture(1), 1), mds_sample(picture(2), 2), mds_sample(picture(3), 3)}});
  const auto set = open(), other = open_mds(fs_, "/other", {.classes = 10}, kLarge);
  const auto read = [&](int rounds) {
    Scratch scratch;
    for (int round = 0; round < rounds; ++round) {
      for (uint64_t i = 0; i < 3; ++i) {
        set->encoded(i, scratch);
        EXPECT_EQ(other->label(i), 1 + static_cast<int64_t>(i));
        EXPECT_EQ(set->label(2 - i), 7 - static_cast<int64_t>(i));
      }
    }
  };
  std::thread first(read, 50), second(read, 50);
  first.join();
  second.join();
}

TEST_F(LargeMds, FingerprintIsWhatTheIndexSays) {
  const Json index = put_three();
  const std::string first = open()->info().fingerprint;
  EXPECT_EQ(first, "589c928f1ac9e935bbc2b4dcae5936a1");
  EXPECT_EQ(open(0)->info().fingerprint, first) << "whether all of it is read or not";
  EXPECT_NE(open_mds(fs_, "/set", {})->info().fingerprint, first);
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json other = index;
    other[Json::json_pointer(pointer)] = value;
    put_file(fs_, "/set/index.json", other.dump());
    return open()->info().fingerprint;
  };
  EXPECT_NE(with("/shards/0/raw_data/hashes", {{"xxh64", "0123"}}), first);
  EXPECT_NE(with("/shards/0/samples", 1), first) << "which only its samples will tell";
  fs_.remove_tree("/set");
  put_three(/*packed=*/true);
  EXPECT_EQ(open()->info().fingerprint, first);
}

TEST_F(LargeMds, WhatIsCheapIsCheckedWhenItOpens) {
  Json index = put_three();
  index["shards"][1]["raw_data"]["bytes"] = 1000;
  put_file(fs_, "/set/index.json", index.dump());
  EXPECT_THROW(open(), Error);
  put_three();
  fs_.remove_file("/set/shard.00001.mds");
  EXPECT_THROW(open(), Error);
}

TEST_F(LargeMds, DamageIsNamedWithTheSample) {
  const std::string path = "/set/shard.00000.mds";
  Json index =
      put_mds(fs_, "/set", {{mds_sample(picture(1), 0), mds_sample(picture(1), 1), mds_sample(picture(1), 2)}});
  const std::string good = fs_.read_file(path);
  const auto with = [&](size_t at, const std::string& bytes, uint64_t sample) {
    std::string shard = good;
    shard.replace(at, bytes.size(), bytes);
    put_file(fs_, path, shard);
    return refusal(sample);
  };
  const size_t bytes = mds_sample(picture(1), 0).size(), first = good.size() - 3 * bytes;
  EXPECT_THAT(with(4, little(3, 4), 0), HasSubstr(path + ": is damaged: sample 0 is said to lie in bytes 3 to "));
  EXPECT_THAT(with(8, little(15, 4), 0), HasSubstr("sample 0 is said to lie in bytes "));
  EXPECT_THAT(with(8, little(15, 4), 1), HasSubstr("sample 1 is said to lie in bytes 15 to "));
  EXPECT_THAT(with(16, little(good.size() + 1, 4), 2), HasSubstr("sample 2 is said to lie in bytes "));
  EXPECT_THAT(with(16, little(good.size() - 1, 4), 2), HasSubstr("sample 2 is said to lie in bytes ")) << "not the end";
  EXPECT_THAT(with(12, little(good.size() - bytes + 1, 4), 1),
              HasSubstr(str("sample 1 has ", bytes + 1, " bytes, and the sizes of its columns add up to others")));
  EXPECT_THAT(with(first + bytes, little(1, 4), 1), HasSubstr(path + ": is damaged: sample 1 has "));
  EXPECT_THAT(with(0, little(2, 4), 1), HasSubstr(path + ": holds 2 samples, index.json says 3 (shards[0].samples)"));
  EXPECT_THAT(with(first + 3 * bytes - 8, little(10, 8), 2),
              HasSubstr(path + "[2]: column \"label\" holds class 10, the model has 10 outputs"));
  EXPECT_THAT(with(first + 3 * bytes - 8, little(UINT64_MAX, 8), 2), HasSubstr("holds a negative number"));
  Scratch scratch;
  EXPECT_EQ(open()->encoded(0, scratch).size(), picture(1).size()) << "the other samples are whole";
  index["shards"][0]["samples"] = 1000;
  put_file(fs_, "/set/index.json", index.dump());
  EXPECT_THAT(refusal(999), HasSubstr("holds 3 samples, index.json says 1000"));
}

// A billion samples could not be opened: 8 GB of offsets and classes were to be read first, an hour's work.
TEST(BillionSamples, AreOpenedAndReadInNoTime) {
  const std::string folder = ::testing::TempDir() + "billion." + std::to_string(::getpid());
  const SparseMds big{.shards = 500, .samples_a_shard = 2'000'000, .picture = picture(9)};
  ASSERT_EQ(big.samples(), 1'000'000'000u);
  const Order order(big.samples(), /*seed=*/1, /*epoch=*/0);
  std::vector<uint64_t> batch;
  for (uint64_t i = 0; i < 64; ++i) batch.push_back(order[i]);
  put_sparse_mds(folder, big, batch);

  const CountingFileSystem counting(FileSystem::real());
  const uint64_t before = peak_rss_bytes();
  {
    const auto set = open_mds(counting, folder, {.classes = 1000});
    EXPECT_EQ(set->info().samples, big.samples());
    EXPECT_EQ(counting.ranges, 0u);
    EXPECT_LT(set->info().bytes_in_memory, uint64_t{1} << 20);
    const BatchFiller filler(*set, {}, /*seed=*/1, /*training=*/true);
    std::vector<float> images(64 * 48);
    std::vector<int64_t> labels(64);
    filler.fill(/*epoch=*/0, batch, images.data(), {.labels = labels.data()});
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(labels[i], big.label(batch[i]));
    EXPECT_FLOAT_EQ(images.back(), 9.0f / 255);
  }
  EXPECT_LE(counting.ranges, 64u * 3);
  EXPECT_EQ(counting.files, 1u);
  EXPECT_LT(peak_rss_bytes() - before, uint64_t{100} << 20);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skytrain::data
