#include "skytrain/data/webdataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/tar_test_data.h"
#include "skytrain/data/webdataset_names.h"
#include "skytrain/image/picture_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string picture(uint8_t value) { return image::encode_png(4, 4, std::string(48, static_cast<char>(value))); }

class Shards : public ::testing::Test {
 protected:
  void put(const std::string& path, std::string_view content) { put_file(fs_, path, content); }
  std::unique_ptr<Dataset> open(const std::string& path = "/set", const OpenOptions& options = {}) {
    recipe::DatasetSpec spec;
    spec.path = path;
    spec.format = "webdataset";
    spec.size = 4;
    return open_dataset(fs_, spec, options);
  }
  std::string refusal(const std::string& path = "/set", const OpenOptions& options = {},
                      ErrorKind kind = ErrorKind::kData) {
    try {
      open(path, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  std::string refusal_of(const std::vector<std::pair<std::string, std::string>>& members) {
    put("/set/a.tar", tar_of(members));
    return refusal();
  }

  MemoryFileSystem fs_;
};

std::string split(const std::string& member) {
  const auto name = split_webdataset_name(member);
  return name ? name->key + "|" + name->field : "none";
}

// What re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$") of webdataset gives.
TEST(WebdatasetNames, KeyAndField) {
  EXPECT_EQ(split("0001.jpg"), "0001|jpg");
  EXPECT_EQ(split("a/b.seg.PNG"), "a/b|seg.png");
  EXPECT_EQ(split("train.v1/part.0/0000.png"), "train.v1/part.0/0000|png");
  EXPECT_EQ(split("set/22.0/1.0.png"), "set/22.0/1|0.png");
  EXPECT_EQ(split("./23530 Track 2.0 (Clean Version).png"), "./23530 Track 2|0 (clean version).png");
  EXPECT_EQ(split("a."), "a|");
  EXPECT_EQ(split("README"), "none");
  EXPECT_EQ(split("a.b/README"), "none");
  EXPECT_EQ(split(".hidden"), "none");
  EXPECT_EQ(split("a/.hidden.png"), "a/|hidden.png");
  EXPECT_EQ(split("a/b/.x.png"), "a/b/|x.png");
  EXPECT_EQ(split("a.b/.x.png"), "none");
  EXPECT_EQ(split("/.x"), "/|x");
  EXPECT_EQ(split(""), "none");
}

TEST(WebdatasetNames, Meta) {
  for (const char* name : {"__meta__", "__meta__/x.png", "____", ".x.png", "a/._x.png"}) {
    EXPECT_TRUE(is_webdataset_meta(name)) << name;
  }
  for (const char* name : {"a/__meta__", "__meta__.png", "__x", "x.png"})
    EXPECT_FALSE(is_webdataset_meta(name)) << name;
}

TEST(WebdatasetNames, BracesAreExpandedAsBashDoes) {
  EXPECT_THAT(expand_braces("a", ""), ElementsAre("a"));
  EXPECT_THAT(expand_braces("s-{008..011}.tar", ""), ElementsAre("s-008.tar", "s-009.tar", "s-010.tar", "s-011.tar"));
  EXPECT_THAT(expand_braces("{9..11}", ""), ElementsAre("9", "10", "11"));
  EXPECT_THAT(expand_braces("{2..0}{a,b}", ""), ElementsAre("2a", "2b", "1a", "1b", "0a", "0b"));
  EXPECT_THAT(expand_braces("{0..9..4}", ""), ElementsAre("0", "4", "8"));
  EXPECT_THAT(expand_braces("x{,-1}", ""), ElementsAre("x", "x-1"));
  for (const char* pattern : {"{", "{}", "{a}", "{a..b}", "{0..}", "{0..9..0}", "{0..99999999}", "{0..999}{0..9999}"}) {
    EXPECT_THROW(expand_braces(pattern, ""), Error) << pattern;
  }
}

TEST_F(Shards, SamplesAreInTheOrderOfShardsAndMembers) {
  put("/set/b.tar", tar_of({{"x/1.png", picture(3)}, {"x/1.cls", "7"}}));
  put("/set/a.tar",
      tar_of({{"2.CLS", " 1\n"}, {"2.Png", picture(1)}, {"2.json", "{}"}, {"1.jpg", picture(2)}, {"1.cls", "0"}}));
  const auto set = open();
  EXPECT_EQ(set->info().samples, 3u);
  EXPECT_EQ(set->info().classes, 8);
  EXPECT_EQ(set->info().format, "webdataset");
  EXPECT_THAT(set->info().notes, IsEmpty());
  EXPECT_EQ(set->name(0), "a.tar: 2.Png");
  EXPECT_EQ(set->name(1), "a.tar: 1.jpg");
  EXPECT_EQ(set->name(2), "b.tar: x/1.png");
  EXPECT_EQ(set->label(0), 1);
  EXPECT_EQ(set->label(2), 7);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(copy_of_pixels(*set, i), std::vector<uint8_t>(48, i + 1));
  Scratch scratch;
  const auto encoded = set->encoded_pictures()->encoded(2, scratch);
  EXPECT_EQ(std::string(encoded.begin(), encoded.end()), picture(3));
  EXPECT_EQ(scratch.path, "/set/b.tar: x/1.png");
}

TEST_F(Shards, OneFileOrAPatternOfThem) {
  for (const char* name : {"/set/s-000.tar", "/set/s-001.tar", "/set/s-002.tar"}) {
    put(name, tar_of({{"1.png", picture(1)}, {"1.cls", "0"}}));
  }
  EXPECT_EQ(open("/set/s-001.tar")->info().samples, 1u);
  EXPECT_EQ(open("/set/s-{001..002}.tar")->info().samples, 2u);
  EXPECT_THAT(refusal("/set/s-{001..003}.tar"), HasSubstr("/set/s-003.tar: no such shard"));
  EXPECT_THAT(refusal("/set/s-{1..2.tar", {}, ErrorKind::kRecipe), HasSubstr("is no pattern of shards"));
  EXPECT_THAT(refusal("/set/none.tar"), HasSubstr("no such file or folder"));
}

TEST_F(Shards, LongNamesAreReadAgainWithTheSample) {
  const std::string name = std::string(200, 'n') + ".png";
  put("/set/a.tar", tar_special('x', pax_record("path", name)) + tar_member("x", picture(5)) +
                        tar_special('L', std::string(200, 'n') + ".cls") + tar_member("y", "3") + tar_end());
  const auto set = open();
  EXPECT_EQ(set->name(0), "a.tar: " + name);
  EXPECT_EQ(copy_of_pixels(*set, 0), std::vector<uint8_t>(48, 5));
  EXPECT_EQ(set->label(0), 3);
}

// Dots in names were taken for extensions: four samples became one, or had no image.
TEST_F(Shards, DotsInNamesAreSaid) {
  EXPECT_THAT(
      refusal_of({{"set/22.0/1.0.png", picture(1)}, {"set/22.0/1.0.cls", "0"}}),
      AllOf(HasSubstr("/set/a.tar: sample \"set/22.0/1\" has no picture (jpg, jpeg, png); its fields are 0.png, "
                      "0.cls"),
            HasSubstr("its first file is set/22.0/1.0.png")));
}

TEST_F(Shards, WhatIsNoSampleIsNamed) {
  const std::string p = picture(1);
  EXPECT_THAT(refusal_of({{"1.png", p}}), HasSubstr("sample \"1\" has no class (cls); its fields are png"));
  EXPECT_THAT(refusal_of({{"1.png", p}, {"1.jpg", p}, {"1.cls", "0"}}), HasSubstr("has 2 pictures"));
  EXPECT_THAT(refusal_of({{"1.png", p}, {"1.PNG", p}, {"1.cls", "0"}}), HasSubstr("has field \"png\" twice"));
  EXPECT_THAT(refusal_of({{"1.cls", "0"}, {"2.cls", "0"}, {"1.png", p}}), HasSubstr("sample \"1\" has no picture"));
  EXPECT_THAT(refusal_of({}), HasSubstr("has no samples"));
  put("/set/a.tar", tar_special('2', "", "1.png") + tar_of({{"1.cls", "0"}}));
  EXPECT_THAT(refusal(), HasSubstr("1.png is a link"));
}

TEST_F(Shards, ClassesAreWholeNumbersBelowTheModels) {
  for (const char* label : {"", "cat", "-1", "1.0", "99999999999", "2147483647", "1 2"}) {
    EXPECT_THAT(refusal_of({{"1.png", picture(1)}, {"1.cls", label}}), HasSubstr("1.cls holds \"")) << label;
  }
  EXPECT_THAT(refusal_of({{"1.png", picture(1)}, {"1.cls", std::string(80, '0')}}), HasSubstr("no class"));
  put("/set/a.tar", tar_of({{"1.png", picture(1)}, {"1.cls", "4"}}));
  OpenOptions options;
  options.classes = 4;
  EXPECT_THAT(refusal("/set", options), HasSubstr("1.cls holds class 4, the model has 4 outputs"));
  options.classes = 5;
  EXPECT_EQ(open("/set", options)->info().classes, 5);
}

TEST_F(Shards, WhatIsPassedOverIsNamedOnce) {
  put("/set/a.tar",
      tar_of({{"__info__", "x"}, {"._1.png", "x"}, {"1.png", picture(1)}, {"README", "x"}, {"1.cls", "0"}}));
  put("/set/b.tar", tar_end());
  put("/set/a.idx", "v1.2 1");
  put("/set/notes.txt", "x");
  const auto set = open();
  EXPECT_EQ(set->info().samples, 1u);
  EXPECT_THAT(set->info().notes,
              ElementsAre("/set: shards without samples: b.tar",
                          "/set: passed over what belongs to no sample: notes.txt, a.tar: __info__, a.tar: ._1.png, "
                          "a.tar: README"));
}

TEST_F(Shards, FoldersWithoutShardsAndCompressedOnesAreRefused) {
  put("/set/x.txt", "x");
  EXPECT_THAT(refusal(), HasSubstr("/set: has no shards (*.tar)\n  the folder holds: x.txt"));
  put("/set/a.tar.gz", "x");
  EXPECT_THAT(refusal(), HasSubstr("/set/a.tar.gz: is a compressed archive"));
}

TEST_F(Shards, WhatLooksLikeShardsIsSaidForOtherFormats) {
  put("/set/a.tar", tar_of({{"1.png", picture(1)}, {"1.cls", "0"}}));
  recipe::DatasetSpec spec;
  spec.path = "/set";
  spec.format = "imagefolder";
  spec.size = 4;
  try {
    open_dataset(fs_, spec, {});
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("what is there looks like format webdataset"));
  }
}

TEST_F(Shards, OfDamagedShardsTheFirstIsNamed) {
  for (int i = 0; i < 30; ++i) {
    put("/set/" + std::to_string(100 + i) + ".tar", i < 7 ? tar_of({{"1.png", picture(1)}, {"1.cls", "0"}}) : "<html>");
  }
  for (int i = 0; i < 5; ++i) EXPECT_THAT(refusal(), HasSubstr("/set/107.tar: is no tar archive"));
}

TEST_F(Shards, FingerprintsTellKeysSizesLabelsAndShardsApart) {
  const auto fingerprint = [&](const std::string& name, const std::string& key, const std::string& label,
                               const std::string& content) {
    fs_.remove_tree("/set");
    put("/set/" + name, tar_of({{key + ".png", content}, {key + ".cls", label}}));
    return open()->info().fingerprint;
  };
  const std::string first = fingerprint("a.tar", "1", "0", "picture");
  EXPECT_EQ(first, "b1efeaf9d49b5ad0a72dd974c2af6b05");
  EXPECT_EQ(fingerprint("a.tar", "1", "0", "picture"), first);
  EXPECT_NE(fingerprint("b.tar", "1", "0", "picture"), first);
  EXPECT_NE(fingerprint("a.tar", "2", "0", "picture"), first);
  EXPECT_NE(fingerprint("a.tar", "1", "1", "picture"), first);
  EXPECT_NE(fingerprint("a.tar", "1", "0", "pictures"), first);
}

TEST_F(Shards, AShardThatChangesUnderARunIsNoticed) {
  const std::string one = picture(1), other = one + "x";
  put("/set/a.tar", tar_of({{"1.png", one}, {"1.cls", "0"}}));
  const auto set = open();
  put("/set/a.tar", tar_of({{"1.png", other}, {"1.cls", "0"}}));
  Scratch scratch;
  EXPECT_THROW(set->pixels(0, scratch), Error);
}

}  // namespace
}  // namespace skytrain::data
