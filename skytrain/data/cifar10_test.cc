#include "skytrain/data/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Record n of file f has label (f + n) mod 10; its pixel p is (31 f + 7 n + 3 p) mod 256.
std::string records(int file, int count) {
  std::string bytes;
  for (int n = 0; n < count; ++n) {
    bytes += static_cast<char>((file + n) % 10);
    for (int p = 0; p < 3072; ++p) bytes += static_cast<char>(31 * file + 7 * n + 3 * p);
  }
  return bytes;
}

constexpr char kNames[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

class Cifar10 : public ::testing::Test {
 protected:
  void put(const std::string& path, std::string_view content) { put_file(fs_, path, content); }
  void put_all(const std::string& folder = "/cifar") {
    for (int f = 1; f <= 5; ++f) put(str(folder, "/data_batch_", f, ".bin"), records(f, 4));
    put(folder + "/test_batch.bin", records(6, 3));
    put(folder + "/batches.meta.txt", kNames);
  }
  static recipe::DatasetSpec spec_of(const std::string& split, const std::string& path) {
    recipe::DatasetSpec spec;
    spec.format = "cifar10";
    spec.path = path;
    spec.split = split;
    return spec;
  }
  std::unique_ptr<Dataset> open(const std::string& split = "train", const std::string& path = "/cifar") {
    return open_dataset(fs_, spec_of(split, path), {.classes = 10});
  }
  std::string refusal(const std::string& split = "train", const std::string& path = "/cifar", int64_t classes = 10,
                      ErrorKind kind = ErrorKind::kData) {
    try {
      open_dataset(fs_, spec_of(split, path), {.classes = classes});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }

  MemoryFileSystem fs_;
};

TEST_F(Cifar10, ReadsTheFiveFilesInOrder) {
  put_all();
  const auto set = open();
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.samples, 20u);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.height, 32);
  EXPECT_EQ(info.width, 32);
  EXPECT_EQ(info.classes, 10);  // as many as names, though the highest label is 8
  EXPECT_EQ(info.format, "cifar10");
  EXPECT_EQ(info.class_names.size(), 10u);
  EXPECT_EQ(info.class_names[9], "truck");
  EXPECT_THAT(info.notes, IsEmpty());
  EXPECT_EQ(set->name(0), "data_batch_1.bin[0]");
  EXPECT_EQ(set->name(19), "data_batch_5.bin[3]");
  for (uint64_t i = 0; i < 20; ++i) {
    const int file = 1 + static_cast<int>(i / 4), n = static_cast<int>(i % 4);
    EXPECT_EQ(set->label(i), (file + n) % 10);
    for (int p = 0; p < 3072; ++p) {
      ASSERT_EQ(pixels_of(*set, i)[p], static_cast<uint8_t>(31 * file + 7 * n + 3 * p)) << i << " " << p;
    }
  }
  EXPECT_EQ(open("test")->info().samples, 3u);
  EXPECT_EQ(open("test")->name(2), "test_batch.bin[2]");
}

TEST_F(Cifar10, TheFolderAboveAndPackedFilesAreTheSame) {
  put_all();
  put_all("/above/cifar-10-batches-bin");
  const std::string fingerprint = open()->info().fingerprint;
  EXPECT_EQ(open("train", "/above")->info().fingerprint, fingerprint);
  for (int f = 1; f <= 5; ++f) put(str("/packed/data_batch_", f, ".bin.gz"), gzip(records(f, 4)));
  EXPECT_EQ(open("train", "/packed")->info().fingerprint, fingerprint);
  put("/packed/data_batch_3.bin", records(3, 4));  // plain wins
  EXPECT_EQ(open("train", "/packed")->name(8), "data_batch_3.bin[0]");
  EXPECT_EQ(open("train", "/packed")->info().samples, 20u);
}

TEST_F(Cifar10, SomeOfTheFilesWillDoAndAreNamed) {
  put("/cifar/data_batch_2.bin", records(2, 4));
  put("/cifar/data_batch_10.bin", records(10, 4));
  put("/cifar/data_batch_x.bin", "no");
  put("/cifar/data_batch_4.txt", "no");
  const auto set = open();
  EXPECT_EQ(set->info().samples, 8u);
  EXPECT_EQ(set->name(4), "data_batch_10.bin[0]") << "sorted by number";
  EXPECT_THAT(set->info().notes, ElementsAre("/cifar: has 2 of the 5 training files of CIFAR-10: data_batch_2.bin, "
                                             "data_batch_10.bin"));
  EXPECT_THAT(set->info().class_names, IsEmpty());
}

TEST_F(Cifar10, OneFileIsASetOfItsOwn) {
  put("/parts/first.bin.gz", gzip(records(1, 4)));
  const auto set = open("train", "/parts/first.bin.gz");
  EXPECT_EQ(set->info().samples, 4u);
  EXPECT_EQ(set->name(3), "first.bin.gz[3]");
  EXPECT_THAT(set->info().notes, IsEmpty());
}

TEST_F(Cifar10, MissingFilesAreListedWithWhatTheFolderHolds) {
  EXPECT_THAT(refusal(), HasSubstr("/cifar: no such folder"));
  put("/cifar/readme.html", "x");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("/cifar: has no data_batch_*.bin"), HasSubstr("the folder holds: readme.html")));
  EXPECT_THAT(refusal("test"), HasSubstr("/cifar: has no test_batch.bin"));
  put("/cifar/data_batch_1", "pickle");
  EXPECT_THAT(refusal(), HasSubstr("these are the files of the Python version: fetch cifar-10-binary.tar.gz"));
  put("/cifar/cifar-10-binary.tar.gz", "x");
  EXPECT_THAT(refusal(), HasSubstr("unpack cifar-10-binary.tar.gz"));
  EXPECT_THAT(refusal("tset", "/cifar", 10, ErrorKind::kRecipe), HasSubstr("did you mean \"test\"?"));
}

TEST_F(Cifar10, WhatIsNoneOfItsFilesIsDescribed) {
  const auto refused = [&](std::string_view content, const std::string& suffix = "") {
    MemoryFileSystem fs;
    put_file(fs, "/cifar/data_batch_1.bin" + suffix, content);
    try {
      open_dataset(fs, spec_of("train", "/cifar"), {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_THAT(error.where(), HasSubstr("/cifar/data_batch_1.bin"));
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(records(1, 2)), "accepted");
  EXPECT_THAT(refused("<!DOCTYPE html>"), HasSubstr("not a file of CIFAR-10's binary version (looks like HTML)"));
  EXPECT_THAT(refused("<!DOCTYPE html>", ".gz"), HasSubstr("not gzip (looks like HTML)"));
  EXPECT_THAT(refused(gzip("<html>"), ".gz"), HasSubstr("binary version (looks like HTML)"));
  EXPECT_THAT(refused(""), HasSubstr("is empty (0 bytes)"));
  EXPECT_THAT(refused(gzip("")), HasSubstr("(is empty)"));
  EXPECT_THAT(refused(records(1, 2).substr(0, 6145)),
              HasSubstr("is 6145 bytes, which is no whole number of records of 3073: truncated, or not CIFAR-10"));
  EXPECT_THAT(refused(gzip(records(1, 2).substr(0, 6145))), HasSubstr("is 6145 bytes unpacked, which is no whole"));
  EXPECT_THAT(refused(std::string(1, '\1') + std::string(3073, '\2')), HasSubstr("of 3074 as CIFAR-100 has them"));
  const std::string packed = gzip(records(1, 2));
  for (size_t size = 2; size < packed.size(); size += 7) {
    ASSERT_THAT(refused(packed.substr(0, size), ".gz"), HasSubstr("is a truncated gzip file")) << size;
  }
  EXPECT_THAT(refused(packed + "abc", ".gz"), HasSubstr("3 bytes of trailing garbage"));
  std::string damaged = packed;
  damaged[damaged.size() - 8] = static_cast<char>(damaged[damaged.size() - 8] ^ 1);
  EXPECT_THAT(refused(damaged, ".gz"), HasSubstr("CRC error"));
}

TEST_F(Cifar10, LabelsOutsideAreNamedWithTheirRecord) {
  std::string bytes = records(1, 4);
  bytes[2 * 3073] = 10;
  put("/cifar/data_batch_1.bin", bytes);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/cifar/data_batch_1.bin[2]: label 10 is outside [0, 10)"),
                               HasSubstr("is damaged, or not one of CIFAR-10's")));
  put("/cifar/data_batch_1.bin", records(1, 4));
  EXPECT_THAT(refusal("train", "/cifar", 3), AllOf(HasSubstr("data_batch_1.bin[2]: label 3 is outside [0, 3)"),
                                                   HasSubstr("the model has 3 classes, CIFAR-10 has 10")));
}

TEST_F(Cifar10, OtherNamesOfClassesArePassedOver) {
  put_all();
  put("/cifar/batches.meta.txt", "apple\r\naquarium_fish\r\n");
  const auto set = open();
  EXPECT_THAT(set->info().class_names, IsEmpty());
  EXPECT_THAT(set->info().notes, ElementsAre(HasSubstr("batches.meta.txt: holds 2 names of classes, expected 10")));
}

}  // namespace
}  // namespace skytrain::data
