#include "skytrain/data/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/encoded_pictures.h"
#include "skytrain/data/idx_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr uint64_t kSamples = 60;

class Packing : public ::testing::Test {
 protected:
  Packing() {
    fs_.make_directories("/source/cat");
    fs_.make_directories("/source/dog");
    for (const char* folder : {"/source", "/"}) fs_.sync_directory(folder);
    for (uint64_t i = 0; i < kSamples; ++i) {
      const std::string pixels = image::noise(16, 16, 3, static_cast<unsigned>(i));
      const std::string name = "/source/" + std::string(i % 3 == 0 ? "cat/" : "dog/") + std::to_string(100 + i);
      // Some are PNG, whatever their name says. All survive a crash.
      write_file_atomically(fs_, name + ".jpg",
                            i % 5 == 0 ? image::encode_png(16, 16, pixels) : image::encode_jpeg(16, 16, pixels));
    }
    options_.shard_bytes = 8000;
    options_.threads = 1;
  }

  std::unique_ptr<Dataset> open(const std::string& format, const std::string& path) {
    recipe::DatasetSpec spec;
    spec.path = path;
    spec.format = format;
    spec.size = 16;
    return open_dataset(fs_, spec, {});
  }
  PackResult pack_to(const std::string& folder) { return pack(fs_, *open("imagefolder", "/source"), folder, options_); }
  std::string refusal(const std::string& folder, ErrorKind kind) {
    try {
      pack_to(folder);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  // Names and contents of all files.
  std::map<std::string, std::string> files(const std::string& folder) {
    std::map<std::string, std::string> all;
    for (const std::string& name : fs_.list(folder)) all[name] = fs_.read_file(str(folder, "/", name));
    return all;
  }
  // As the source, whatever of it is there: pictures byte for byte.
  static void expect_equal(const Dataset& packed, const Dataset& source) {
    ASSERT_EQ(packed.info().samples, source.info().samples);
    EXPECT_EQ(packed.info().classes, source.info().classes);
    EXPECT_TRUE(packed.info().notes.empty());
    Scratch a, b;
    for (uint64_t i = 0; i < source.info().samples; ++i) {
      const auto x = packed.encoded_pictures()->encoded(i, a), y = source.encoded_pictures()->encoded(i, b);
      EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << i;
      EXPECT_EQ(packed.encoded_pictures()->encoded_bytes(i), y.size());
      EXPECT_EQ(packed.label(i), source.label(i));
    }
    EXPECT_TRUE(packed.check_files().damage.empty());
  }

  MemoryFileSystem fs_;
  PackOptions options_;
};

TEST_F(Packing, KeepsPicturesAndClassesInBothFormats) {
  const auto source = open("imagefolder", "/source");
  for (const auto& [format, level] : {std::pair{"mds", 0}, {"mds", 3}, {"webdataset", 0}}) {
    options_.format = format;
    options_.zstd_level = level;
    const std::string folder = std::string("/") + format + std::to_string(level);
    const PackResult result = pack_to(folder);
    EXPECT_EQ(result.samples, kSamples);
    EXPECT_GT(result.shards, 3u);
    EXPECT_EQ(result.kept, 0u);
    const auto packed = open(format, folder);
    expect_equal(*packed, *source);
    if (level == 0) {
      for (const auto& [name, content] : files(folder)) EXPECT_LE(content.size(), 20480u) << name;
    }
    // And from there to the other format.
    options_.format = std::string(format) == "mds" ? "webdataset" : "mds";
    options_.zstd_level = 0;
    pack(fs_, *packed, folder + "-again", options_);
    expect_equal(*open(options_.format, folder + "-again"), *source);
  }
}

TEST_F(Packing, WritesTheSameWhateverTheThreads) {
  for (const char* format : {"mds", "webdataset"}) {
    options_.format = format;
    options_.threads = 1;
    pack_to(std::string("/one-") + format);
    options_.threads = 7;
    pack_to(std::string("/seven-") + format);
    EXPECT_EQ(files(std::string("/one-") + format), files(std::string("/seven-") + format));
  }
}

TEST_F(Packing, AgainVerifiesAndMendsWhatIsDamaged) {
  options_.format = "mds";
  const PackResult first = pack_to("/mds");
  const auto expected = files("/mds");
  EXPECT_EQ(pack_to("/mds").kept, first.shards);
  EXPECT_EQ(files("/mds"), expected);
  std::string damaged = expected.at("shard.00001.mds");
  damaged[500] ^= 1;
  put_file(fs_, "/mds/shard.00001.mds", damaged);
  fs_.remove_file("/mds/shard.00002.mds");
  const PackResult again = pack_to("/mds");
  EXPECT_EQ(again.kept, first.shards - 2);
  EXPECT_EQ(again.bytes, first.bytes);
  EXPECT_EQ(files("/mds"), expected);
}

// The work ends at any call to the disk: what is there then is completed by the next call.
TEST_F(Packing, GoesOnAfterAFailureAnywhere) {
  for (const char* format : {"mds", "webdataset"}) {
    options_.format = format;
    options_.zstd_level = std::string(format) == "mds" ? 1 : 0;
    pack_to("/whole");
    const auto expected = files("/whole");
    int failures = 0;
    for (int limit = 0;; ++limit) {
      const std::string half = std::string("/half-") + format + std::to_string(limit);
      int calls = 0;
      fs_.set_fault([&](std::string_view, const std::string&) { return calls++ == limit ? ENOSPC : 0; });
      bool failed = false;
      try {
        pack_to(half);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
        failed = true;
        ++failures;
      }
      fs_.set_fault(nullptr);
      if (limit % 2 == 0) fs_.crash();
      pack_to(half);
      ASSERT_EQ(files(half), expected) << format << " " << limit;
      if (!failed) break;
    }
    EXPECT_GT(failures, 30);
    fs_.remove_tree("/whole");
  }
}

TEST_F(Packing, StopsOnRequestAndGoesOn) {
  options_.format = "webdataset";
  pack_to("/whole");
  int asked = 0;
  options_.stop = [&] { return ++asked > 40; };
  EXPECT_THAT(refusal("/half", ErrorKind::kInterrupted), HasSubstr("/half: stopped after "));
  options_.stop = nullptr;
  const PackResult result = pack_to("/half");
  EXPECT_GT(result.kept, 5u);
  EXPECT_LT(result.kept, result.shards);
  EXPECT_EQ(files("/half"), files("/whole"));
}

TEST_F(Packing, OtherFoldersAreLeftAlone) {
  options_.format = "mds";
  put_file(fs_, "/full/thesis.tex", "x");
  EXPECT_THAT(refusal("/full", ErrorKind::kData), HasSubstr("/full: is not empty: it holds thesis.tex"));
  pack_to("/mds");
  options_.shard_bytes = 9000;
  EXPECT_THAT(refusal("/mds", ErrorKind::kData), HasSubstr("with other options"));
  options_.shard_bytes = 8000;
  fs_.remove_file("/source/cat/100.jpg");
  EXPECT_THAT(refusal("/mds", ErrorKind::kData), HasSubstr("the pack of another data set"));
  put_file(fs_, "/broken/pack.jsonl", "{");
  put_file(fs_, "/broken/shard.00000.mds", "x");
  EXPECT_THAT(refusal("/broken", ErrorKind::kData), HasSubstr("/broken/pack.jsonl: is damaged"));
}

// A damaged picture ended the first call; without it the set is another one, and the folder was refused for good.
TEST_F(Packing, AFolderWithoutAShardIsAsGoodAsNone) {
  options_.format = "mds";
  put_file(fs_, "/listed/pack.jsonl", "{\"pack\": 1, \"source\": \"before it was mended\"}\n");
  pack_to("/listed");
  EXPECT_TRUE(fs_.exists("/listed/index.json"));
}

TEST_F(Packing, WhatIsNoPictureIsNamed) {
  options_.format = "webdataset";
  put_file(fs_, "/source/dog/199.jpg", "<html>");
  EXPECT_THAT(refusal("/tar", ErrorKind::kData), HasSubstr("/source/dog/199.jpg: "));
  put_file(fs_, "/t.csv", "a,y\n1,0\n");
  recipe::DatasetSpec spec;
  spec.format = "csv";
  spec.path = "/t.csv";
  spec.target = {"y"};
  EXPECT_THROW(pack(fs_, *open_dataset(fs_, spec, {}), "/x", options_), Error);
}

// Raw pixels become PNG files, of which the same pixels are read; grey ones three times.
TEST_F(Packing, PixelsAreKept) {
  put_file(fs_, "/mnist/train-images-idx3-ubyte", idx_images(40, 16, 16));
  put_file(fs_, "/mnist/train-labels-idx1-ubyte", idx_labels(40, 7));
  std::string records;
  for (int i = 0; i < 30; ++i) records += static_cast<char>(i % 10) + image::noise(32, 32, 3, static_cast<unsigned>(i));
  put_file(fs_, "/cifar/test_batch.bin", records);
  recipe::DatasetSpec spec;
  spec.path = "/mnist";
  spec.format = "idx";
  spec.split = "train";
  const auto grey = open_dataset(fs_, spec, {});
  spec.path = "/cifar";
  spec.format = "cifar10";
  spec.split = "test";
  const auto colour = open_dataset(fs_, spec, {});
  for (const Dataset* source : {grey.get(), colour.get()}) {
    const DatasetInfo& info = source->info();
    for (const char* format : {"mds", "webdataset"}) {
      options_.format = format;
      const std::string folder = str("/packed-", info.format, "-", format);
      const PackResult result = pack(fs_, *source, folder, options_);
      EXPECT_EQ(result.samples, info.samples);
      EXPECT_EQ(pack(fs_, *source, folder, options_).kept, result.shards);
      spec = {};
      spec.path = folder;
      spec.format = format;
      spec.size = info.height;
      const auto packed = open_dataset(fs_, spec, {});
      ASSERT_EQ(packed->info().samples, info.samples);
      const size_t plane = static_cast<size_t>(info.height * info.width);
      for (uint64_t i = 0; i < info.samples; ++i) {
        EXPECT_EQ(packed->label(i), source->label(i));
        const std::vector<uint8_t> read = copy_of_pixels(*packed, i), raw = copy_of_pixels(*source, i);
        for (size_t k = 0; k < 3 * plane; ++k) ASSERT_EQ(read[k], raw[info.channels == 1 ? k % plane : k]);
      }
    }
  }
}

TEST_F(Packing, ReportsHowFarItIs) {
  options_.format = "mds";
  std::vector<uint64_t> seen;
  options_.done = [&](uint64_t samples) { seen.push_back(samples); };
  const PackResult result = pack_to("/mds");
  EXPECT_EQ(seen.size(), result.shards);
  EXPECT_EQ(seen.back(), kSamples);
  EXPECT_THAT(fs_.list("/mds"), IsSupersetOf({"index.json", "pack.jsonl", "shard.00000.mds"}));
}

}  // namespace
}  // namespace skytrain::data
