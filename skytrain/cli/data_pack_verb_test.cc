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

class DataPack : public ::testing::Test {
 protected:
  DataPack() : root_(testing::TempDir() + "skytrain-data-pack-" + std::to_string(getpid()) + "/") {
    copy("cat/1.jpg", "photo.jpg");
    copy("cat/2.jpg", "progressive.jpg");
    copy("dog/1.png", "palette.png");
    copy("dog/2.jpg", "photo.jpg");
  }
  ~DataPack() override { std::filesystem::remove_all(root_); }

  void copy(const std::string& name, const std::string& from) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "set/" + name).parent_path());
    std::filesystem::copy_file("tests/testdata/pictures/" + from, root_ + "set/" + name);
  }
  static Printed data(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "data");
    return run_captured(arguments);
  }

  const std::string root_;
};

TEST_F(DataPack, WritesShardsThatVerifyReads) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--format", "mds"},
        {"--format", "mds", "--compression", "zstd"},
        {"--format", "webdataset", "--threads", "2", "--shard-size", "64 KiB"}}) {
    const std::string out = root_ + "out";
    std::vector<std::string> arguments = {"pack", root_ + "set", "-o", out, "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Printed p = data(arguments);
    ASSERT_EQ(p.code, 0) << p.err;
    const Json json = parse_json(p.out, "stdout");
    EXPECT_EQ(json["samples"], 4);
    EXPECT_EQ(json["kept"], 0);
    EXPECT_EQ(parse_json(data(arguments).out, "stdout")["kept"], json["shards"]);
    const Printed verified = data({"verify", out, "--json"});
    ASSERT_EQ(verified.code, 0) << verified.err;
    const Json found = parse_json(verified.out, "stdout");
    EXPECT_EQ(found["format"], flags[1]);
    EXPECT_EQ(found["splits"]["all"]["samples"], 4);
    EXPECT_EQ(found["splits"]["all"]["classes"], 2);
    EXPECT_FALSE(found["splits"]["all"].contains("height"));
    std::filesystem::remove_all(out);
  }
}

TEST_F(DataPack, RefusesWhatMakesNoSense) {
  const auto refused = [&](std::vector<std::string> flags, int code) {
    std::vector<std::string> arguments = {"pack", root_ + "set", "-o", root_ + "out"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Printed p = data(arguments);
    EXPECT_EQ(p.code, code);
    return p.err;
  };
  EXPECT_THAT(refused({"--format", "tfrecord"}, 2), HasSubstr("--format: \"tfrecord\" can't be packed to"));
  EXPECT_THAT(refused({"--compression", "gzip"}, 2), HasSubstr("zstd:LEVEL with a level from 1 to 19"));
  EXPECT_THAT(refused({"--compression", "zstd:20"}, 2), HasSubstr("--compression"));
  EXPECT_THAT(refused({"--compression", "zstd", "--format", "webdataset"}, 2), HasSubstr("is for --format mds"));
  EXPECT_THAT(refused({"--shard-size", "3 parsec"}, 2), HasSubstr("--shard-size"));
  EXPECT_THAT(refused({"--shard-size", "1KiB"}, 2), HasSubstr("no size from 64 KiB to 2 GiB"));
  EXPECT_THAT(refused({"--threads", "-1"}, 2), HasSubstr("--threads"));
  EXPECT_FALSE(std::filesystem::exists(root_ + "out"));
  std::ofstream(root_ + "t.csv") << "a,y\n1,0\n";
  const Printed p = data({"pack", root_ + "t.csv", "--target", "y", "-o", root_ + "out"});
  EXPECT_EQ(p.code, 4);
  EXPECT_THAT(p.err, HasSubstr("t.csv: is of format csv, whose samples are no pictures"));
}

TEST_F(DataPack, VerifyNamesAShardThatIsDamaged) {
  ASSERT_EQ(data({"pack", root_ + "set", "-o", root_ + "out"}).code, 0);
  std::fstream shard(root_ + "out/shard.00000.mds", std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(1000);
  shard.put('\x7f');
  shard.close();
  const Printed p = data({"verify", root_ + "out"});
  EXPECT_EQ(p.code, 4);
  EXPECT_THAT(p.err, AllOf(HasSubstr("1 of 1 files differ from their checksums"),
                           HasSubstr("shard.00000.mds: is damaged: its xxh64 is ")));
}

TEST_F(DataPack, InspectTellsClassesSizesBrokenAndDuplicates) {
  std::ofstream(root_ + "set/dog/3.jpg") << "<html>";
  const Printed p = data({"inspect", root_ + "set"});
  ASSERT_EQ(p.code, 0) << p.err;
  EXPECT_THAT(p.out,
              AllOf(HasSubstr("5 samples"), HasSubstr("2, of 2 to 3 samples"), HasSubstr("60.0 %"),
                    HasSubstr("3 JPEG, 1 PNG"), HasSubstr("dog/3.jpg: is no JPEG or PNG picture: it looks like HTML")));
  EXPECT_THAT(p.out, AllOf(HasSubstr("1 group of equal files, 1 of them in several classes"),
                           HasSubstr("cat/1.jpg, dog/2.jpg")));
  const Json json = parse_json(data({"inspect", root_ + "set", "--json"}).out, "stdout")["splits"]["all"];
  EXPECT_EQ(json["classes"][1], (Json{{"label", 1}, {"name", "dog"}, {"samples", 3}}));
  EXPECT_EQ(json["broken"][0]["name"], "dog/3.jpg");
  EXPECT_EQ(json["duplicates"], Json::parse(R"([["cat/1.jpg", "dog/2.jpg"]])"));
  EXPECT_EQ(json["kinds"], (Json{{"jpeg", 3}, {"png", 1}}));
}

TEST_F(DataPack, InspectOfOtherFormats) {
  const Json json = parse_json(data({"inspect", "data/mnist", "--json"}).out, "stdout")["splits"]["test"];
  EXPECT_EQ(json["samples"], 10000);
  EXPECT_EQ(json["classes"][5]["samples"], 892);
  EXPECT_FALSE(json.contains("broken"));
}

TEST_F(DataPack, PixelsArePackedAsPngASplitAFolder) {
  std::filesystem::create_directories(root_ + "mnist");
  for (const auto& [prefix, count] : {std::pair{"train", 5}, {"t10k", 3}}) {
    std::string images("\0\0\x08\x03\0\0\0\0\0\0\0\x04\0\0\0\x04", 16), labels("\0\0\x08\x01\0\0\0\0", 8);
    images[7] = labels[7] = static_cast<char>(count);
    for (int i = 0; i < count; ++i) {
      images += std::string(16, static_cast<char>(9 * i));
      labels += static_cast<char>(i);
    }
    std::ofstream(root_ + "mnist/" + prefix + "-images-idx3-ubyte", std::ios::binary) << images;
    std::ofstream(root_ + "mnist/" + prefix + "-labels-idx1-ubyte", std::ios::binary) << labels;
  }
  const Printed p = data({"pack", root_ + "mnist", "-o", root_ + "out", "--json"});
  ASSERT_EQ(p.code, 0) << p.err;
  const Json json = parse_json(p.out, "stdout");
  EXPECT_EQ(json["samples"], 8);
  EXPECT_EQ(json["splits"]["test"]["samples"], 3);
  EXPECT_THAT(json["notes"][0].get<std::string>(), HasSubstr("grey ones are read as three equal channels"));
  EXPECT_EQ(parse_json(data({"verify", root_ + "out/train", "--json"}).out, "stdout")["splits"]["all"]["samples"], 5);
  const Printed sheet = data({"inspect", root_ + "mnist", "--sheet", root_ + "mnist/sheet.png"});
  ASSERT_EQ(sheet.code, 0) << sheet.err;
  EXPECT_TRUE(std::filesystem::exists(root_ + "mnist/sheet-train.png"));
  EXPECT_TRUE(std::filesystem::exists(root_ + "mnist/sheet-test.png"));
}

TEST_F(DataPack, InspectDrawsASheet) {
  const std::string file = root_ + "sheet.png";
  std::ofstream(file) << "an old one";
  const Printed p = data({"inspect", root_ + "set", "--sheet", file});
  ASSERT_EQ(p.code, 0) << p.err;
  EXPECT_THAT(p.out, AllOf(HasSubstr("sheet.png"), HasSubstr("cat, dog")));
  EXPECT_GT(std::filesystem::file_size(file), 1000u);
  const Json json = parse_json(data({"inspect", root_ + "set", "--sheet", file, "--json"}).out, "stdout");
  EXPECT_EQ(json["splits"]["all"]["sheet"]["labels"], Json::parse("[0, 1]"));
  const auto refused = [&](const std::string& set, const std::string& name) {
    const Printed r = data({"inspect", set, "--sheet", name});
    EXPECT_EQ(r.code, 2);
    return r.err;
  };
  EXPECT_THAT(refused(root_ + "set", root_ + "sheet.jpg"), HasSubstr("does not end in .png"));
  EXPECT_THAT(refused(root_ + "set", root_ + "no/sheet.png"), HasSubstr("--sheet: there is no folder"));
  std::filesystem::create_directories(root_ + "folder.png");
  EXPECT_THAT(refused(root_ + "set", root_ + "folder.png"), HasSubstr("is there already and no file"));
}

}  // namespace
}  // namespace skytrain::cli
