#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "skytrain/base/json.h"
#include "skytrain/cli/command_line_test_data.h"

namespace skytrain::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataVerify : public ::testing::Test {
 protected:
  DataVerify() : root_(testing::TempDir() + "skytrain-data-verb-" + std::to_string(getpid())) {
    std::filesystem::create_directories(root_);
  }
  ~DataVerify() override { std::filesystem::remove_all(root_); }

  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name, std::ios::binary) << content;
  }
  void put_picture(const std::string& name, const std::string& from) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::filesystem::copy_file("tests/testdata/pictures/" + from, root_ + "/" + name);
  }
  Printed verify(const std::string& name, const std::vector<std::string>& more = {}) {
    return verify_path(root_ + "/" + name, more);
  }
  static Printed verify_path(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"data", "verify", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_captured(arguments);
  }

  const std::string root_;
};

TEST_F(DataVerify, TellsWhatIsInMnist) {
  const Printed p = verify_path("data/mnist", {"--json"});
  ASSERT_EQ(p.code, 0) << p.err;
  const Json json = parse_json(p.out, "stdout");
  EXPECT_EQ(json["format"], "idx");
  EXPECT_EQ(json["splits"]["train"]["samples"], 60000);
  EXPECT_EQ(json["splits"]["test"]["samples"], 10000);
  EXPECT_EQ(json["splits"]["test"]["classes"], 10);
}

TEST_F(DataVerify, WhatIsNoDataSetIsNamed) {
  EXPECT_EQ(verify_path("/nonexistent").code, 4);
  EXPECT_EQ(verify_path("skytrain").code, 4);
  EXPECT_EQ(verify_path("skytrain/cli/main.cc").code, 4);
  const Printed p = verify_path("data/mnist", {"--format", "idz"});
  EXPECT_EQ(p.code, 2);
  EXPECT_THAT(p.err, HasSubstr("did you mean \"idx\""));
}

TEST_F(DataVerify, TellsOfAFolderOfPictures) {
  put_picture("set/cat/1.jpg", "photo.jpg");
  put_picture("set/dog/2.jpg", "progressive.jpg");
  put_picture("set/dog/3.png", "palette.png");
  put("set/.DS_Store", "x");
  const Printed p = verify("set");
  EXPECT_EQ(p.code, 0) << p.err;
  EXPECT_THAT(p.out, AllOf(HasSubstr("  all   3 samples, 2 classes (cat, dog), fingerprint "),
                           HasSubstr("  note  " + root_ + "/set: passed over what is no class or picture: .DS_Store")));
  const Json json = parse_json(verify("set", {"--json"}).out, "stdout");
  EXPECT_EQ(json["format"], "imagefolder");
  EXPECT_EQ(json["splits"]["all"]["samples"], 3);
  EXPECT_EQ(json["splits"]["all"]["class_names"], (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(json["splits"]["all"]["notes"].size(), 1u);
}

TEST_F(DataVerify, NamesEachDamagedPicture) {
  put_picture("set/cat/1.jpg", "photo.jpg");
  put("set/cat/2.jpg", "");
  put("set/dog/3.png", "GIF89a");
  const Printed p = verify("set");
  EXPECT_EQ(p.code, 4);
  EXPECT_THAT(p.err, AllOf(HasSubstr("/set: 2 of 3 pictures can't be used\n"),
                           HasSubstr("/set/cat/2.jpg: is empty (0 bytes)\n"),
                           HasSubstr("/set/dog/3.png: is no JPEG or PNG picture: it is a GIF image\n")));
  for (int i = 0; i < 30; ++i) put("set/dog/x" + std::to_string(i) + ".png", "");
  EXPECT_THAT(verify("set").err, AllOf(HasSubstr("32 of 33 pictures"), HasSubstr("  and 12 more\n")));
}

TEST_F(DataVerify, TellsOfTables) {
  put("t.csv", "a,b,y,z\n1,2,0,0.5\n3,4,4,1.5\n");
  const Printed p = verify("t.csv", {"--target", "y"});
  EXPECT_EQ(p.code, 0) << p.err;
  EXPECT_THAT(p.out, HasSubstr("  all  2 samples, 3 features, 5 classes, fingerprint "));
  EXPECT_THAT(verify("t.csv", {"--target", "z"}).out, HasSubstr("3 features, 1 value to predict, fingerprint"));
  const Json json = parse_json(verify("t.csv", {"--target", "y", "--target", "z", "--json"}).out, "stdout");
  EXPECT_EQ(json["splits"]["all"]["features"], 2);
  EXPECT_EQ(json["splits"]["all"]["feature_names"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["splits"]["all"]["values"], 2);
  EXPECT_FALSE(json["splits"]["all"].contains("classes"));
}

TEST_F(DataVerify, ATableNeedsItsTarget) {
  put("t.csv", "a,b,y\n1,2,0\n3,,1\n");
  const Printed p = verify("t.csv");
  EXPECT_EQ(p.code, 2);
  EXPECT_THAT(p.err, AllOf(HasSubstr("--target: format csv needs it"), HasSubstr("t.csv: a, b, y")));
  EXPECT_THAT(verify("t.csv", {"--target", "y"}).err, HasSubstr("t.csv:3:3: column \"b\" is empty"));
  EXPECT_THAT(verify("t.csv", {"--target", "x"}).err, HasSubstr("has no column \"x\""));
  put_picture("set/cat/1.jpg", "photo.jpg");
  EXPECT_THAT(verify("set", {"--target", "x"}).err,
              HasSubstr("--target: is for formats csv and jsonl, and this is imagefolder"));
}

TEST_F(DataVerify, TellsOfCifar10) {
  put("cifar-10-batches-bin/data_batch_1.bin", std::string(2 * 3073, '\3'));
  put("cifar-10-batches-bin/test_batch.bin", std::string(3073, '\1'));
  for (const char* path : {"", "cifar-10-batches-bin"}) {
    const Printed p = verify(path);
    EXPECT_EQ(p.code, 0) << p.err;
    EXPECT_THAT(p.out, AllOf(HasSubstr("  train  2 samples, 4 classes, 3 x 32 x 32, fingerprint"),
                             HasSubstr("has 1 of the 5 training files of CIFAR-10: data_batch_1.bin"),
                             HasSubstr("  test   1 sample, 2 classes, 3 x 32 x 32")));
  }
  EXPECT_THAT(verify("cifar-10-batches-bin/test_batch.bin").out, HasSubstr("  train  1 sample, "));
}

TEST_F(DataVerify, LinesOfJsonAreRowsOrPictures) {
  put("t.jsonl", "{\"x\": [1, 2], \"y\": \"a\", \"z\": [0.5, 1]}\n");
  EXPECT_THAT(verify("t.jsonl").err,
              AllOf(HasSubstr("--target: format jsonl needs it"), HasSubstr("t.jsonl: x, y, z")));
  put("v.ndjson", "{\"x\": [1, 2], \"z\": [0.5, 1]}\n");
  const Printed values = verify("v.ndjson", {"--target", "z"});
  EXPECT_THAT(values.out, HasSubstr("1 sample, 2 features, 2 values to predict")) << values.err;
  put_picture("img/1.jpg", "photo.jpg");
  put_picture("img/2.png", "palette.png");
  put("metadata.jsonl",
      "{\"file_name\": \"img/1.jpg\", \"label\": \"dog\"}\r\n{\"label\": \"cat\", \"file_name\": \"img/2.png\"}\r\n");
  const std::vector<std::string> keys = {"--image", "file_name", "--target", "label"};
  const Printed pictures = verify("metadata.jsonl", keys);
  EXPECT_THAT(pictures.out, HasSubstr("2 samples, 2 classes (cat, dog), fingerprint")) << pictures.err;
  put("img/2.png", "not a picture");
  EXPECT_THAT(verify("metadata.jsonl", keys).err, HasSubstr("1 of 2 pictures can't be used"));
  EXPECT_THAT(verify("img", {"--image", "x"}).err, HasSubstr("--image: is for format jsonl"));
}

TEST_F(DataVerify, AFormatThatIsGivenIsNotGuessed) {
  put_picture("set/cat/1.jpg", "photo.jpg");
  EXPECT_THAT(verify("set", {"--format", "idx"}).err, HasSubstr("has no train-images-idx3-ubyte"));
  EXPECT_THAT(verify("set", {"--format", "cifar10"}).err, HasSubstr("has no data_batch_*.bin"));
  put("table.data", "1,2,0\n");
  EXPECT_THAT(verify("table.data").err, HasSubstr("its name does not tell the format"));
  EXPECT_EQ(verify("table.data", {"--format", "csv", "--target", "2"}).code, 0);
  EXPECT_THAT(verify("set", {"--format", "synthetic"}).err,
              HasSubstr("formats: idx, cifar10, imagefolder, webdataset, mds, csv, jsonl"));
}

}  // namespace
}  // namespace skytrain::cli
