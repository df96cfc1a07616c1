#include "skytrain/data/mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "skytrain/base/checksum.h"
#include "skytrain/base/error.h"
#include "skytrain/data/mds_sample.h"
#include "skytrain/data/mds_test_data.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string picture(uint8_t value) { return image::encode_png(4, 4, std::string(48, static_cast<char>(value))); }

class MdsFolder : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const OpenOptions& options = {}, const Mds::Limits& limits = {}) {
    recipe::DatasetSpec spec;
    spec.path = "/set";
    spec.format = "mds";
    spec.size = 4;
    return Mds::open(fs_, spec, options, limits);
  }
  std::string refusal(const OpenOptions& options = {}) {
    try {
      open(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  std::string refusal_of(const Json& index) {
    put_file(fs_, "/set/index.json", index.dump());
    return refusal();
  }
  // Two shards of two and one samples: pictures 1 to 3, classes 5 to 7.
  Json put_three(bool packed = false) {
    return put_mds(fs_, "/set", {{mds_sample(picture(1), 5), mds_sample(picture(2), 6)}, {mds_sample(picture(3), 7)}},
                   packed);
  }
  static void expect_three(const Dataset& set) {
    ASSERT_EQ(set.info().samples, 3u);
    EXPECT_EQ(set.info().classes, 8);
    for (uint8_t i = 0; i < 3; ++i) {
      EXPECT_EQ(copy_of_pixels(set, i), std::vector<uint8_t>(48, i + 1));
      EXPECT_EQ(set.label(i), 5 + i);
    }
    EXPECT_EQ(set.name(1), "shard.00000.mds[1]");
    EXPECT_EQ(set.name(2), "shard.00001.mds[0]");
  }

  MemoryFileSystem fs_;
};

TEST_F(MdsFolder, SamplesAreInTheOrderOfShards) {
  put_three();
  const auto set = open();
  expect_three(*set);
  EXPECT_EQ(set->info().format, "mds");
  EXPECT_THAT(set->info().notes, IsEmpty());
  Scratch scratch;
  set->encoded_pictures()->encoded(2, scratch);
  EXPECT_EQ(scratch.path, "/set/shard.00001.mds[0]");
}

TEST_F(MdsFolder, PackedShardsAreUnpackedToMemoryOrToDisk) {
  put_three();
  const std::string fingerprint = open()->info().fingerprint;
  fs_.remove_tree("/set");
  put_three(/*packed=*/true);
  const auto in_memory = open();
  expect_three(*in_memory);
  EXPECT_EQ(in_memory->info().fingerprint, fingerprint);
  EXPECT_THAT(in_memory->info().notes, IsEmpty());
  const auto on_disk = open({}, {.unpacked_in_memory = 100});
  expect_three(*on_disk);
  EXPECT_EQ(on_disk->info().fingerprint, fingerprint);
  EXPECT_LT(on_disk->info().bytes_in_memory, in_memory->info().bytes_in_memory);
  ASSERT_EQ(on_disk->info().notes.size(), 1u);
  EXPECT_THAT(on_disk->info().notes[0], HasSubstr("2 packed shards are unpacked to"));
}

TEST_F(MdsFolder, ColumnsMayBeOfAnyOrderAndNumber) {
  Json index = put_three();
  // "a" (uint8), "blob" (bytes), "cls" (int16), "pic" (jpeg), "text" (str).
  const std::string image = picture(9);
  const std::string sample =
      little(3, 4) + little(image.size(), 4) + little(2, 4) + "\x01" + "xyz" + little(3, 2) + image + "ab";
  index = put_mds(fs_, "/set", {{sample, sample}});
  Json& shard = index["shards"][0];
  shard["column_names"] = {"a", "blob", "cls", "pic", "text"};
  shard["column_encodings"] = {"uint8", "bytes", "int16", "jpeg:90", "str"};
  shard["column_sizes"] = {1, nullptr, 2, nullptr, nullptr};
  put_file(fs_, "/set/index.json", index.dump());
  const auto set = open();
  EXPECT_EQ(set->label(1), 3);
  EXPECT_EQ(copy_of_pixels(*set, 1), std::vector<uint8_t>(48, 9));
  shard["column_names"] = {"a", "blob", "number", "pic", "text"};
  EXPECT_THAT(refusal_of(index), HasSubstr("several columns of integers"));
  shard["column_encodings"][3] = "json";
  shard["column_names"] = {"a", "x", "cls", "pic", "text"};
  EXPECT_EQ((put_file(fs_, "/set/index.json", index.dump()), open()->info().samples), 2u);  // bytes named x
  shard["column_encodings"][1] = "str";
  EXPECT_THAT(refusal_of(index),
              AllOf(HasSubstr("has no column of pictures"), HasSubstr("its columns: a (uint8), x (str)")));
}

TEST_F(MdsFolder, TheOnlyColumnOfIntegersIsTheClassAndSaidSo) {
  Json index = put_three();
  for (Json& shard : index["shards"]) shard["column_names"] = {"image", "number"};
  put_file(fs_, "/set/index.json", index.dump());
  EXPECT_THAT(open()->info().notes,
              ElementsAre("/set: classes are those of column \"number\", the only one of integers"));
}

TEST_F(MdsFolder, WhatTheIndexGetsWrongIsNamed) {
  const Json good = put_three();
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json index = good;
    index[Json::json_pointer(pointer)] = value;
    return refusal_of(index);
  };
  const std::string file = "/set/index.json: ";
  EXPECT_THAT(with("/version", 9), HasSubstr(file + "version: is 9"));
  EXPECT_THAT(with("/shards", Json::array()), HasSubstr(file + "shards: is empty"));
  EXPECT_THAT(with("/shards", 1), HasSubstr("shards: is no array"));
  EXPECT_THAT(with("/shards/1/format", "csv"), HasSubstr("shards[1].format: is \"csv\""));
  EXPECT_THAT(with("/shards/1/version", 1), HasSubstr("shards[1].version: is 1"));
  EXPECT_THAT(with("/shards/0/samples", -1), HasSubstr("shards[0].samples: is no whole number"));
  EXPECT_THAT(with("/shards/0/compression", "gz:3"), HasSubstr("shards[0].compression: is \"gz:3\""));
  EXPECT_THAT(with("/shards/0/compression", "zstd"), HasSubstr("shards[0].zip_data: is missing"));
  EXPECT_THAT(with("/shards/0/column_sizes", {1}),
              HasSubstr("has 2 column_names, 2 column_encodings and 1 column_sizes"));
  EXPECT_THAT(with("/shards/0/column_sizes/1", 4), HasSubstr("whose values have 8 bytes"));
  EXPECT_THAT(with("/shards/0/column_sizes/0", 4), HasSubstr("whose values have no fixed size"));
  EXPECT_THAT(with("/shards/0/column_sizes/1", 0), HasSubstr("shards[0].column_sizes[1]: is no number of bytes"));
  EXPECT_THAT(with("/shards/0/column_encodings/0", "pkl"), HasSubstr("pickled objects run code"));
  EXPECT_THAT(with("/shards/0/column_encodings/0", "webp"),
              HasSubstr("of column \"image\" is \"webp\", which is not known"));
  EXPECT_THAT(with("/shards/1/column_names/0", "img"), HasSubstr("shards[1]: has other columns than the first shard"));
  EXPECT_THAT(with("/shards/0/column_names/0", "label"), HasSubstr("names a column twice"));
  EXPECT_THAT(with("/shards/1/raw_data/basename", "shard.00000.mds"), HasSubstr("is named twice"));
  for (const char* name : {"../x.mds", "/etc/passwd", "a/../../x", "", ".", "a//b", "a/"}) {
    EXPECT_THAT(with("/shards/0/raw_data/basename", name), HasSubstr("shards[0].raw_data.basename: \"")) << name;
  }
  EXPECT_THAT(with("/shards/1/raw_data/bytes", 1), AllOf(HasSubstr("/set/shard.00001.mds: has "),
                                                         HasSubstr("index.json says 1 (shards[1].raw_data.bytes)")));
  EXPECT_THAT(with("/shards/0/samples", 3),
              HasSubstr("/set/shard.00000.mds: holds 2 samples, index.json says 3 (shards[0].samples)"));
  EXPECT_THAT(with("/shards/0/raw_data/basename", "other.mds"), HasSubstr("/set/other.mds: is not there"));
  put_file(fs_, "/set/index.json", good.dump().substr(0, 50));
  EXPECT_THAT(refusal(), HasSubstr(file + "not valid JSON"));
  put_file(fs_, "/set/index.json", "");
  EXPECT_THAT(refusal(), HasSubstr(file + "not valid JSON"));
  fs_.remove_file("/set/index.json");
  EXPECT_THAT(refusal(), HasSubstr(file + "is not there"));
}

TEST_F(MdsFolder, DamagedShardsAreNamed) {
  put_mds(fs_, "/set", {{mds_sample(picture(1), 0)}});
  const std::string good = fs_.read_file("/set/shard.00000.mds");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string shard = good;
    shard.replace(at, bytes.size(), bytes);
    put_file(fs_, "/set/shard.00000.mds", shard);
    return refusal();
  };
  EXPECT_THAT(with(4, little(3, 4)), HasSubstr("the offsets of its samples don't rise"));
  EXPECT_THAT(with(8, little(15, 4)), HasSubstr("the offsets of its samples don't rise"));
  EXPECT_THAT(with(14, little(1, 4)), HasSubstr("sample 0 has"));
  EXPECT_THAT(with(14, little(0xffffffff, 4)), HasSubstr("sample 0 has"));
  EXPECT_THAT(with(good.size() - 8, little(UINT64_MAX, 8)),
              HasSubstr("/set/shard.00000.mds[0]: column \"label\" holds a negative"));
  EXPECT_THAT(with(good.size() - 8, little(1u << 31, 8)), HasSubstr("holds 2147483648, no class"));
  with(good.size() - 8, little(UINT64_MAX, 8));
  OpenOptions options;
  options.classes = 3;
  put_mds(fs_, "/set", {{mds_sample(picture(1), 2), mds_sample(picture(1), 3)}});
  EXPECT_THAT(refusal(options),
              HasSubstr("shard.00000.mds[1]: column \"label\" holds class 3, the model has 3 outputs"));
}

TEST_F(MdsFolder, DamagedPackedShardsAreNamed) {
  Json index = put_three(/*packed=*/true);
  const std::string name = "/set/shard.00001.mds.zstd", good = fs_.read_file(name);
  const auto with = [&](const std::string& content) {
    put_file(fs_, name, content);
    index["shards"][1]["zip_data"]["bytes"] = content.size();
    return refusal_of(index);
  };
  EXPECT_THAT(with(good.substr(0, good.size() / 2)), HasSubstr(name + ": is cut short"));
  EXPECT_THAT(with(std::string(good.size(), 'x')), HasSubstr(name + ": is damaged"));
  EXPECT_THAT(with(zstd("short", 3)), HasSubstr("unpacks to 5 bytes, its index announces"));
  EXPECT_THAT(with(zstd(std::string(1 << 20, 'x'), 3)), HasSubstr("unpacks to more than the"));
  EXPECT_THAT(with(""), HasSubstr("is cut short"));
}

TEST_F(MdsFolder, ChecksumsAreCompared) {
  Json index = put_three();
  const std::string shard = fs_.read_file("/set/shard.00000.mds");
  const auto checksum = Checksum::make("xxh64");
  checksum->update(std::as_bytes(std::span(shard.data(), shard.size())));
  index["shards"][0]["raw_data"]["hashes"] = {{"sha1", "0123"}, {"xxh64", checksum->hex()}};
  put_file(fs_, "/set/index.json", index.dump());
  FileCheck check = open()->check_files();
  EXPECT_EQ(check.files, 1u);
  EXPECT_THAT(check.damage, IsEmpty());
  EXPECT_THAT(check.unknown, ElementsAre("sha1"));
  index["shards"][0]["raw_data"]["hashes"]["xxh64"] = "0000";
  put_file(fs_, "/set/index.json", index.dump());
  check = open()->check_files();
  EXPECT_THAT(check.damage, ElementsAre("/set/shard.00000.mds: is damaged: its xxh64 is " + checksum->hex() +
                                        ", index.json says 0000"));
}

TEST_F(MdsFolder, FingerprintsTellSizesClassesAndShardsApart) {
  const auto fingerprint = [&](const std::vector<std::vector<std::string>>& shards) {
    fs_.remove_tree("/set");
    put_mds(fs_, "/set", shards);
    return open()->info().fingerprint;
  };
  const std::string first = fingerprint({{mds_sample("picture", 1), mds_sample("picture", 2)}});
  EXPECT_EQ(first, "dbc61b39fdbfa0a27a1fb8f77b22fc6e");
  EXPECT_NE(fingerprint({{mds_sample("picture", 2), mds_sample("picture", 1)}}), first);
  EXPECT_NE(fingerprint({{mds_sample("pictures", 1), mds_sample("picture", 2)}}), first);
  EXPECT_NE(fingerprint({{mds_sample("picture", 1)}, {mds_sample("picture", 2)}}), first);
}

TEST(Zstd, FramesThatFollowEachOtherCountAsOne) {
  MemoryFileSystem fs;
  std::string big;
  for (unsigned i = 0; i < 500000; ++i) big += static_cast<char>(i * i / 7);
  put_file(fs, "/x", zstd(big, 1) + zstd("more", 1) + zstd("", 1));
  std::string unpacked;
  unzstd(fs, "/x", big.size() + 4, [&](std::span<const std::byte> piece) {
    unpacked.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  EXPECT_EQ(unpacked, big + "more");
}

}  // namespace
}  // namespace skytrain::data
