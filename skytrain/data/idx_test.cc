#include "skytrain/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kImages[] = "/mnist/train-images-idx3-ubyte";
constexpr char kLabels[] = "/mnist/train-labels-idx1-ubyte";

recipe::DatasetSpec spec_of(const std::string& split = "train") {
  recipe::DatasetSpec spec;
  spec.path = "/mnist";
  spec.format = "idx";
  spec.split = split;
  return spec;
}

class Idx : public ::testing::Test {
 protected:
  void put(const std::string& path, std::string_view content) { put_file(fs_, path, content); }
  void put_good_labels() { put(std::string(kLabels) + ".gz", gzip(idx_labels(12, 10))); }
  std::unique_ptr<Dataset> open(const std::string& split = "train", int64_t classes = 10) {
    return open_dataset(fs_, spec_of(split), {.classes = classes});
  }
  // The message with which opening fails; checks that it is an error of the data.
  std::string refusal(int64_t classes = 10) {
    try {
      open("train", classes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  // With good labels, what is said of these bytes in the place of the images.
  std::string refusal_of_images(std::string_view content, const std::string& suffix) {
    put_good_labels();
    put(kImages + suffix, content);
    return refusal();
  }

  MemoryFileSystem fs_;
};

TEST_F(Idx, ReadsPlainAndGzipAlike) {
  put(kImages, idx_images(12, 3, 4));
  put(kLabels, idx_labels(12, 10));
  const auto plain = open();
  EXPECT_EQ(plain->info().samples, 12u);
  EXPECT_EQ(plain->info().channels, 1);
  EXPECT_EQ(plain->info().height, 3);
  EXPECT_EQ(plain->info().width, 4);
  EXPECT_EQ(plain->info().classes, 10);
  EXPECT_EQ(plain->info().format, "idx");
  EXPECT_GE(plain->info().bytes_in_memory, 12u * 12u);
  EXPECT_EQ(plain->name(3), "train-images-idx3-ubyte[3]");
  for (uint64_t n = 0; n < 12; ++n) {
    EXPECT_EQ(plain->label(n), static_cast<int64_t>(n % 10));
    for (uint64_t p = 0; p < 12; ++p) EXPECT_EQ(pixels_of(*plain, n)[p], static_cast<uint8_t>(31 * n + 7 * p));
  }

  MemoryFileSystem packed;
  put_file(packed, std::string(kImages) + ".gz", gzip(idx_images(12, 3, 4)));
  put_file(packed, std::string(kLabels) + ".gz", gzip(idx_labels(12, 10)));
  const auto gz = open_dataset(packed, spec_of(), {.classes = 10});
  EXPECT_EQ(gz->name(3), "train-images-idx3-ubyte.gz[3]");
  EXPECT_EQ(gz->info().fingerprint, plain->info().fingerprint);
}

TEST_F(Idx, FingerprintFollowsTheContent) {
  put(kImages, idx_images(12, 3, 4));
  put(kLabels, idx_labels(12, 10));
  const std::string original = open()->info().fingerprint;
  EXPECT_EQ(original.size(), 32u);
  EXPECT_EQ(open()->info().fingerprint, original);
  std::string changed = idx_images(12, 3, 4);
  changed.back() = static_cast<char>(changed.back() + 1);
  put(kImages, changed);
  EXPECT_NE(open()->info().fingerprint, original);
  put(kImages, idx_images(12, 4, 3));  // same bytes, other shape
  EXPECT_NE(open()->info().fingerprint, original);
  put(kImages, idx_images(12, 3, 4));
  put(kLabels, idx_labels(12, 9));
  EXPECT_NE(open()->info().fingerprint, original);
}

TEST_F(Idx, SplitNamesThePairOfFiles) {
  put(kImages, idx_images(12, 3, 4));
  put(kLabels, idx_labels(12, 10));
  put("/mnist/t10k-images-idx3-ubyte", idx_images(5, 3, 4));
  put("/mnist/t10k-labels-idx1-ubyte.gz", gzip(idx_labels(5, 10)));
  EXPECT_EQ(open("train")->info().samples, 12u);
  EXPECT_EQ(open("test")->info().samples, 5u);
  try {
    open("tset");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecipe);
    EXPECT_THAT(error.message(), HasSubstr("did you mean \"test\"?"));
  }
}

TEST_F(Idx, PlainFileWinsOverItsGzip) {
  put_good_labels();
  put(kImages, idx_images(12, 3, 4));
  put(std::string(kImages) + ".gz", "rubbish");
  EXPECT_EQ(open()->name(0), "train-images-idx3-ubyte[0]");
}

TEST_F(Idx, ContentDecidesNotTheName) {  // browsers unpack a download and keep its name
  put_good_labels();
  put(std::string(kImages) + ".gz", idx_images(12, 3, 4));
  EXPECT_EQ(open()->info().samples, 12u);
  put(kImages, gzip(idx_images(12, 3, 4)));
  EXPECT_EQ(open()->info().samples, 12u);
}

TEST_F(Idx, GzipMayHaveSeveralMembers) {
  put_good_labels();
  const std::string images = idx_images(12, 3, 4);
  std::string members;
  for (size_t i = 0; i < images.size(); i += 10) members += gzip(images.substr(i, 10));
  put(std::string(kImages) + ".gz", gzip("") + members + gzip(""));
  EXPECT_EQ(pixels_of(*open(), 11)[11], static_cast<uint8_t>(31 * 11 + 7 * 11));
}

// A failed download left an HTML page named train-images-idx3-ubyte.gz; the user got a gzip trace.
TEST_F(Idx, HtmlInPlaceOfGzipIsNamed) {
  EXPECT_THAT(refusal_of_images("<!DOCTYPE html>\n<html><body>Not found</body></html>", ".gz"),
              HasSubstr("/mnist/train-images-idx3-ubyte.gz: not gzip (looks like HTML)"));
  EXPECT_THAT(refusal_of_images("\xef\xbb\xbf \n<HTML>", ".gz"), HasSubstr("not gzip (looks like HTML)"));
  EXPECT_THAT(refusal_of_images("{\"error\": 404}", ".gz"), HasSubstr("not gzip (looks like JSON)"));
  EXPECT_THAT(refusal_of_images("Too Many Requests\n", ".gz"), HasSubstr("not gzip (looks like text)"));
  EXPECT_THAT(refusal_of_images("version https://git-lfs.github.com/spec/v1\noid", ".gz"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(refusal_of_images("PK\x03\x04zipped", ".gz"), HasSubstr("not gzip (is a ZIP archive)"));
  EXPECT_THAT(refusal_of_images("<html>", ""), HasSubstr("train-images-idx3-ubyte: not IDX (looks like HTML)"));
  fs_.remove_file(kImages);
  EXPECT_THAT(refusal_of_images(gzip("<html><body>Sorry</body></html>"), ".gz"),
              HasSubstr("not IDX (looks like HTML)"));
}

TEST_F(Idx, SwappedFilesAreNamed) {
  put(kImages, idx_labels(12, 10));
  put(kLabels, idx_images(12, 3, 4));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train-labels-idx1-ubyte: holds images (magic 0x00000803)"),
                               HasSubstr("may have been swapped")));
  put(kLabels, idx_labels(12, 10));
  EXPECT_THAT(refusal(), HasSubstr("train-images-idx3-ubyte: holds labels (magic 0x00000801)"));
}

TEST_F(Idx, WrongMagicIsShown) {
  EXPECT_THAT(refusal_of_images(idx_header({12, 3, 4}, 0x0d) + std::string(12 * 12 * 4, 'x'), ""),
              HasSubstr("magic 0x00000d03"));
  EXPECT_THAT(refusal_of_images(idx_header({12, 3, 4, 1}) + std::string(12 * 12, 'x'), ""), HasSubstr("4 dimensions"));
  EXPECT_THAT(refusal_of_images(std::string("\x01\x02\x03\x04", 4) + std::string(20, 'x'), ""),
              HasSubstr("starts with 0x01 0x02 0x03 0x04"));
}

TEST_F(Idx, TruncatedGzipIsSaidToBe) {
  const std::string whole = gzip(idx_images(12, 3, 4));
  for (size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THAT(refusal_of_images(whole.substr(0, size), ".gz"), HasSubstr("truncated")) << size << " bytes";
  }
}

TEST_F(Idx, WrongChecksumIsACrcError) {
  std::string bytes = gzip(idx_images(12, 3, 4));
  bytes[bytes.size() - 8] = static_cast<char>(bytes[bytes.size() - 8] ^ 1);
  EXPECT_THAT(refusal_of_images(bytes, ".gz"), HasSubstr("CRC error"));
  bytes = gzip(idx_images(12, 3, 4));
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  EXPECT_THAT(refusal_of_images(bytes, ".gz"), HasSubstr("damaged gzip file"));
}

TEST_F(Idx, TrailingGarbageIsRefused) {
  EXPECT_THAT(refusal_of_images(gzip(idx_images(12, 3, 4)) + "abc", ".gz"), HasSubstr("3 bytes of trailing garbage"));
  EXPECT_THAT(refusal_of_images(gzip(idx_images(12, 3, 4)) + gzip("abc"), ".gz"),
              HasSubstr("more than the 160 bytes that its header announces"));
  EXPECT_THAT(refusal_of_images(idx_images(12, 3, 4) + "abc", ""),
              HasSubstr("is 163 bytes, its header announces 160 (12 x 3 x 4): trailing garbage"));
}

TEST_F(Idx, ShortFilesAreRefused) {
  const std::string whole = idx_images(12, 3, 4);
  for (size_t size = 1; size < whole.size(); ++size) refusal_of_images(whole.substr(0, size), "");
  EXPECT_THAT(refusal_of_images(whole.substr(0, 100), ""), HasSubstr("truncated"));
  fs_.remove_file(kImages);
  EXPECT_THAT(refusal_of_images(gzip(whole.substr(0, 100)), ".gz"),
              HasSubstr("holds 100 decompressed bytes, its header announces 160"));
  EXPECT_THAT(refusal_of_images("", ".gz"), HasSubstr("is empty (0 bytes)"));
}

TEST_F(Idx, ZeroDimensionsAreRefused) {
  EXPECT_THAT(refusal_of_images(idx_header({0, 3, 4}), ""), HasSubstr("announces 0 samples"));
  EXPECT_THAT(refusal_of_images(idx_header({12, 0, 4}), ""), HasSubstr("announces 0 rows"));
  EXPECT_THAT(refusal_of_images(idx_header({12, 3, 0}), ""), HasSubstr("announces 0 columns"));
}

// A header is 16 bytes that anyone can write: it may not make the reader allocate.
TEST_F(Idx, AbsurdDimensionsAreRefusedBeforeAllocation) {
  const uint32_t most = 0xffffffff;
  EXPECT_THAT(refusal_of_images(idx_header({most, most, most}), ""), HasSubstr("no file can hold"));
  EXPECT_THAT(refusal_of_images(idx_header({65536, 65536, 65536}), ""), HasSubstr("truncated"));
  fs_.remove_file(kImages);
  EXPECT_THAT(refusal_of_images(gzip(idx_header({65536, 65536, 65536})), ".gz"), HasSubstr("cannot hold"));
  EXPECT_THAT(refusal_of_images(gzip(idx_header({most, most, most})), ".gz"), HasSubstr("no file can hold"));
  // The other way round, a bomb: a small header, and gigabytes behind it.
  std::string bomb;
  for (int i = 0; i < 4; ++i) bomb += gzip((i == 0 ? idx_images(12, 3, 4) : "") + std::string(8 << 20, '\0'));
  EXPECT_THAT(refusal_of_images(bomb, ".gz"), HasSubstr("more than the 160 bytes"));
  std::string noise(3 << 20, '\0');
  std::mt19937 random(1);
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_THAT(refusal_of_images(gzip(idx_images(12, 3, 4) + noise), ".gz"), HasSubstr("far less than a gzip file"));
}

TEST_F(Idx, CountsOfImagesAndLabelsMustAgree) {
  put(kImages, idx_images(11, 3, 4));
  put(kLabels, idx_labels(12, 10));
  EXPECT_THAT(refusal(),
              HasSubstr("train-images-idx3-ubyte: holds 11 images, but train-labels-idx1-ubyte holds 12 labels"));
}

TEST_F(Idx, LabelBeyondTheModelsClassesIsNamedWithItsIndex) {
  put(kImages, idx_images(12, 3, 4));
  put(kLabels, idx_labels(12, 10));
  EXPECT_THAT(refusal(/*classes=*/8), AllOf(HasSubstr("/mnist/train-labels-idx1-ubyte[8]: label 8 is outside [0, 8)"),
                                            HasSubstr("highest label of the file is 9")));
}

TEST_F(Idx, MissingFilesAreListedWithWhatTheFolderHolds) {
  put("/mnist/readme.txt", "x");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("/mnist: has no train-images-idx3-ubyte[.gz] and no train-labels-idx1-ubyte[.gz]"),
                    HasSubstr("the folder holds: readme.txt")));
  fs_.remove_file("/mnist/readme.txt");
  EXPECT_THAT(refusal(), HasSubstr("the folder is empty"));
  put_good_labels();
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("has no train-images-idx3-ubyte[.gz]"), testing::Not(HasSubstr("no train-labels"))));
}

TEST_F(Idx, PathMustBeAFolder) {
  EXPECT_THAT(refusal(), HasSubstr("/mnist: no such folder"));
  put("/mnist", "x");
  EXPECT_THAT(refusal(), HasSubstr("/mnist: is a file, expected a folder"));
}

TEST_F(Idx, DirectoryInAFilesPlaceIsRefused) {  // some unpackers make a folder of the file's name
  put_good_labels();
  fs_.make_directories(kImages);
  EXPECT_THAT(refusal(), HasSubstr("train-images-idx3-ubyte: is a directory"));
}

TEST(IdxOnDisk, UnreadableFileIsTheEnvironmentsFault) {
  const std::string folder = testing::TempDir() + "skytrain-idx-" + std::to_string(getpid());
  put_file(FileSystem::real(), folder + "/train-images-idx3-ubyte", idx_images(12, 3, 4));
  put_file(FileSystem::real(), folder + "/train-labels-idx1-ubyte", idx_labels(12, 10));
  std::filesystem::permissions(folder + "/train-images-idx3-ubyte", std::filesystem::perms::none);
  recipe::DatasetSpec spec = spec_of();
  spec.path = folder;
  const bool root = geteuid() == 0;  // who may read everything, so be nobody for a moment
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  try {
    open_dataset(FileSystem::real(), spec, {.classes = 10});
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.message(), HasSubstr("train-images-idx3-ubyte"));
  }
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  std::filesystem::remove_all(folder);
}

TEST(IdxOnDisk, ReadsMnist) {
  recipe::DatasetSpec spec = spec_of("test");
  spec.path = "data/mnist";
  const auto mnist = open_dataset(FileSystem::real(), spec, {.classes = 10});
  EXPECT_EQ(mnist->info().samples, 10000u);
  EXPECT_EQ(mnist->info().height, 28);
  EXPECT_EQ(mnist->label(0), 7);  // the famous first ones
  EXPECT_EQ(mnist->label(1), 2);
  EXPECT_EQ(mnist->label(2), 1);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    for (int p = 0; p < 784; ++p) sum += pixels_of(*mnist, i)[p];
  }
  EXPECT_NEAR(static_cast<double>(sum) / 255 / 7840000, 0.1325, 0.0001);  // its known mean
}

TEST_F(Idx, MutatedFilesLoadOrAreRefused) {
  const uint32_t seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  int loaded = 0, refused = 0;
  for (int i = 0; i < 500; ++i) {
    const bool packed = i % 2 == 0, images = draw(4) != 0;
    std::string bytes = images ? idx_images(12, 3, 4) : idx_labels(12, 10);
    if (packed) bytes = gzip(bytes);
    for (size_t n = 1 + draw(3); n > 0; --n) {
      const size_t at = draw(bytes.size());
      switch (draw(6)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(8)));
          break;
        case 1:
          bytes[at] = static_cast<char>(draw(256));
          break;
        case 2:
          bytes.resize(at + 1);
          break;
        case 3:
          bytes.insert(at, bytes.substr(draw(bytes.size()), draw(40)));
          break;
        case 4:
          bytes.erase(at, draw(8));
          bytes += 'x';
          break;
        default:
          bytes[draw(std::min<size_t>(bytes.size(), 18))] = static_cast<char>(draw(2) ? 0xff : 0);
          break;
      }
    }
    MemoryFileSystem fs;
    put_file(fs, kImages, images ? bytes : idx_images(12, 3, 4));
    put_file(fs, kLabels, images ? idx_labels(12, 10) : bytes);
    try {
      const auto dataset = open_dataset(fs, spec_of(), {.classes = 10});
      uint64_t sum = 0;
      const auto& info = dataset->info();
      for (uint64_t n = 0; n < info.samples; ++n) {
        sum += static_cast<uint64_t>(dataset->label(n));
        for (int64_t p = 0; p < info.height * info.width; ++p) sum += pixels_of(*dataset, n)[p];
      }
      EXPECT_GT(sum, 0u);
      ++loaded;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kEnvironment) << error.message();
      EXPECT_THAT(error.where(), HasSubstr("/mnist/train-"));
      ++refused;
    }
  }
  EXPECT_GT(loaded, 50);    // a changed pixel is as good as the old one
  EXPECT_GT(refused, 200);  // a changed gzip never is
}

}  // namespace
}  // namespace skytrain::data
