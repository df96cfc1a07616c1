#include "skytrain/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/csv_number.h"
#include "skytrain/data/dataset_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Csv : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(std::string_view text, std::vector<std::string> target,
                                const OpenOptions& options = {}) {
    put_file(fs_, "/d/t.csv", text);
    recipe::DatasetSpec spec;
    spec.format = "csv";
    spec.path = "/d/t.csv";
    spec.target = std::move(target);
    return open_dataset(fs_, spec, options);
  }
  std::string refusal(std::string_view text, std::vector<std::string> target = {"y"}, const OpenOptions& options = {},
                      ErrorKind kind = ErrorKind::kData) {
    try {
      open(text, std::move(target), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      EXPECT_EQ(error.problem().find('\n'), std::string::npos);
      return error.message();
    }
    ADD_FAILURE() << "was accepted";
    return "";
  }
  static std::vector<float> features(const Dataset& set, uint64_t index) {
    const float* row = set.features(index);
    return {row, row + set.info().channels};
  }
  static std::vector<float> values(const Dataset& set, uint64_t index) {
    const float* row = set.values(index);
    return {row, row + set.info().values};
  }
  static std::vector<int64_t> labels(const Dataset& set) {
    std::vector<int64_t> all;
    for (uint64_t i = 0; i < set.info().samples; ++i) all.push_back(set.label(i));
    return all;
  }

  MemoryFileSystem fs_;
};

// A cell of two lines in a spreadsheet's header: the message had two lines too.
TEST_F(Csv, NamesOfSeveralLinesStayInOneLine) {
  EXPECT_THAT(refusal("\"\ny\",x\n1,2\n", {"y"}, {}, ErrorKind::kRecipe),
              HasSubstr("has no column \"y\" (did you mean \"\\x0Ay\"?)"));
}

TEST_F(Csv, FeaturesAreAllColumnsButTheTarget) {
  const auto set = open("a,y,b\n1,0,2.5\n-3,2,+4e1\n", {"y"});
  const DatasetInfo& info = set->info();
  EXPECT_EQ(info.samples, 2u);
  EXPECT_EQ(info.elements, Elements::kFloat32);
  EXPECT_EQ(info.channels, 2);
  EXPECT_EQ(info.height, 1);
  EXPECT_EQ(info.width, 1);
  EXPECT_EQ(info.classes, 3);
  EXPECT_EQ(info.values, 0);
  EXPECT_EQ(info.format, "csv");
  EXPECT_THAT(info.feature_names, ElementsAre("a", "b"));
  EXPECT_THAT(info.class_names, IsEmpty());
  EXPECT_THAT(features(*set, 0), ElementsAre(1, 2.5f));
  EXPECT_THAT(features(*set, 1), ElementsAre(-3, 40));
  EXPECT_THAT(labels(*set), ElementsAre(0, 2));
  EXPECT_EQ(set->name(1), "t.csv[1]");
  EXPECT_THROW(set->values(0), Error);
  Scratch scratch;
  EXPECT_THROW(set->pixels(0, scratch), Error);
}

TEST_F(Csv, ValuesAreInTheOrderOfTheRecipe) {
  const auto set = open("u,a,v\n1,2,3\n4,5,6.5\n", {"v", "u"}, {.classes = 2, .target = TargetKind::kValues});
  EXPECT_EQ(set->info().values, 2);
  EXPECT_EQ(set->info().classes, 0);
  EXPECT_THAT(values(*set, 0), ElementsAre(3, 1));
  EXPECT_THAT(values(*set, 1), ElementsAre(6.5f, 4));
  EXPECT_THAT(features(*set, 1), ElementsAre(5));
  EXPECT_THROW(set->label(0), Error);
}

TEST_F(Csv, ModelAndLossDecideWhatTheTargetIs) {
  const std::string text = "a,y\n1,0\n2,1\n3,2\n";
  EXPECT_EQ(open(text, {"y"}, {.classes = 3})->info().values, 0);
  EXPECT_EQ(open(text, {"y"}, {.classes = 1, .target = TargetKind::kValues})->info().values, 1);
  EXPECT_EQ(open(text, {"y"}, {.classes = 3, .target = TargetKind::kValues})->info().values, 0) << "a class, one-hot";
  EXPECT_EQ(open(text, {"y"}, {.target = TargetKind::kValues})->info().values, 1);
  EXPECT_THAT(refusal("a,b,c\n1,2,3\n", {"b", "c"}, {.classes = 10}, ErrorKind::kRecipe),
              HasSubstr("data.train.target: names 2 columns, but cross_entropy takes one: the class"));
  EXPECT_THAT(refusal("a,b,c\n1,2,3\n", {"b", "c"}, {.classes = 10, .target = TargetKind::kValues}, ErrorKind::kRecipe),
              AllOf(HasSubstr("data.train.target: names 2 columns, but the model has 10 outputs"),
                    HasSubstr("set model.classes to 2")));
}

TEST_F(Csv, NumbersAreClassesThemselves) {
  EXPECT_THAT(labels(*open("a,y\n1,3\n1,0\n1,3.0\n1,1e0\n", {"y"}, {.classes = 4})), ElementsAre(3, 0, 3, 1));
  EXPECT_THAT(refusal("a,y\n1,3\n1,4\n", {"y"}, {.classes = 4}),
              AllOf(HasSubstr("/d/t.csv:3:3: column \"y\" holds 4, which is outside [0, 4)"),
                    HasSubstr("the model has 4 classes (model.classes)")));
  EXPECT_THAT(refusal("a,y\n1,1\n1,-1\n"),
              HasSubstr("/d/t.csv:3:3: column \"y\" holds -1, but classes are counted from 0"));
  EXPECT_THAT(refusal("a,y\n1,1\n1,2.5\n"),
              AllOf(HasSubstr("/d/t.csv:3:3: column \"y\" holds 2.5, which is no class"), HasSubstr("train.loss mse")));
  EXPECT_THAT(refusal("a,y\n1,1e300\n"), HasSubstr("which is outside [0, 1000000)"));
}

TEST_F(Csv, NamesAreClassesSortedByName) {
  const auto set = open("a,y\n1,dog\n2,cat\n3,\"ant, red\"\n4,dog\n", {"y"}, {.classes = 3});
  EXPECT_THAT(set->info().class_names, ElementsAre("ant, red", "cat", "dog"));
  EXPECT_EQ(set->info().classes, 3);
  EXPECT_THAT(labels(*set), ElementsAre(2, 1, 0, 2));
  EXPECT_THAT(open("a,y\n1,2\n1,1\n1,x\n", {"y"})->info().class_names, ElementsAre("1", "2", "x"));
  EXPECT_THAT(refusal("a,y\n1,dog\n2,cat\n", {"y"}, {.classes = 1}),
              HasSubstr("has 2 classes (cat, dog), the model has 1 output"));
  EXPECT_THAT(refusal("a,y\n1,dog\n2,\n"), HasSubstr("/d/t.csv:3:3: column \"y\" is empty"));
  EXPECT_THAT(refusal("a,y\n1,dog\n2,NA\n"), HasSubstr("/d/t.csv:3:3: column \"y\" holds \"NA\": a missing value"));
  EXPECT_THAT(refusal("a,y\n1,d\xffg\n"), HasSubstr("/d/t.csv:2:3: column \"y\" is not UTF-8"));
}

TEST_F(Csv, EvaluationTakesTheLabelsOfTheTrainingSet) {
  const DatasetInfo train = open("a,b,y\n1,2,cat\n1,2,dog\n1,2,emu\n", {"y"})->info();
  const OpenOptions eval{.classes = 3, .eval = true, .train = &train};
  const auto set = open("y,b,a\ndog,10,20\n", {"y"}, eval);
  EXPECT_THAT(labels(*set), ElementsAre(1));
  EXPECT_THAT(set->info().class_names, ElementsAre("cat", "dog", "emu"));
  EXPECT_THAT(features(*set, 0), ElementsAre(20, 10)) << "columns are found by name";
  EXPECT_THAT(set->info().feature_names, ElementsAre("a", "b"));
  EXPECT_THAT(refusal("a,b,y\n1,2,cat\n1,2,dgo\n", {"y"}, eval),
              HasSubstr("/d/t.csv:3:5: the training set has no class \"dgo\" (did you mean \"dog\"?)"));
  EXPECT_THAT(refusal("a,c,y\n1,2,cat\n", {"y"}, eval),
              HasSubstr("/d/t.csv:1: has no column \"b\", which the training set has"));
  EXPECT_THAT(refusal("a,b,c,y\n1,2,3,cat\n", {"y"}, eval),
              HasSubstr("/d/t.csv:1: has a column \"c\", which the training set does not have"));
  EXPECT_THAT(refusal("a,b,z\n1,2,cat\n", {"y"}, eval, ErrorKind::kRecipe), HasSubstr("data.eval.target: "));

  const DatasetInfo numbers = open("a,y\n1,0\n1,7\n", {"y"})->info();
  const OpenOptions of_numbers{.classes = 8, .eval = true, .train = &numbers};
  EXPECT_THAT(labels(*open("a,y\n1,7\n", {"y"}, of_numbers)), ElementsAre(7));
  EXPECT_THAT(refusal("a,y\n1,7\n1,seven\n", {"y"}, of_numbers),
              AllOf(HasSubstr("/d/t.csv:3:3: column \"y\" holds \"seven\""), HasSubstr("training set are numbers")));
}

TEST_F(Csv, WithoutAHeaderColumnsAreCounted) {
  const auto set = open("# the last digit is the class code.\n5,6,1\n7,8,0\n", {"2"});
  EXPECT_EQ(set->info().samples, 2u);
  EXPECT_THAT(set->info().feature_names, ElementsAre("0", "1"));
  EXPECT_THAT(features(*set, 0), ElementsAre(5, 6));
  EXPECT_THAT(labels(*set), ElementsAre(1, 0));
  EXPECT_THAT(refusal("5,6,1\n7,8,0\n", {"y"}, {}, ErrorKind::kRecipe),
              AllOf(HasSubstr("data.train.target: /d/t.csv has no column \"y\""),
                    HasSubstr("it has no header, so its columns are called 0, 1, 2")));
  // pandas writes such a header for a table without names: it is no row.
  EXPECT_EQ(open("0,1,2\n5,6,1\n", {"2"})->info().samples, 1u);
}

TEST_F(Csv, ATargetThatIsNotThereIsNamedWithTheColumns) {
  EXPECT_THAT(refusal("age,label\n1,2\n", {"labl"}, {}, ErrorKind::kRecipe),
              AllOf(HasSubstr("data.train.target: /d/t.csv has no column \"labl\" (did you mean \"label\"?)"),
                    HasSubstr("its columns: age, label")));
  EXPECT_THAT(refusal("a,y\n1,2\n", {"a", "a"}, {.target = TargetKind::kValues}, ErrorKind::kRecipe),
              HasSubstr("names column \"a\" twice"));
  EXPECT_THAT(refusal("y\n1\n", {"y"}, {}, ErrorKind::kRecipe), HasSubstr("leaves no column of /d/t.csv"));
  EXPECT_THAT(refusal("a,y\n1,2\n", {}, {}, ErrorKind::kRecipe), HasSubstr("data.train.target: is empty"));
}

TEST_F(Csv, BadHeadersAreNamed) {
  EXPECT_THAT(refusal("a,b,a,y\n1,2,3,4\n"), HasSubstr("/d/t.csv:1:5: there are two columns \"a\""));
  EXPECT_THAT(refusal(",a,y\n0,1,2\n"),
              AllOf(HasSubstr("/d/t.csv:1:1: column 0 has no name"), HasSubstr("index=False")));
  EXPECT_THAT(refusal("a,,y\n0,1,2\n"), HasSubstr("/d/t.csv:1:3: column 1 has no name"));
  EXPECT_THAT(refusal("a;b;y\n1;2;3\n"), HasSubstr("/d/t.csv:1: has no commas: its fields seem to be separated"));
  EXPECT_THAT(refusal("a,y\n"), HasSubstr("/d/t.csv: holds a header and no rows"));
  EXPECT_THAT(refusal("# only this\n"), HasSubstr("/d/t.csv: holds no line of values"));
}

TEST_F(Csv, RowsOfAnotherLengthAreNamed) {
  EXPECT_THAT(refusal("a,b,y\n1,2,3\n\n1,2\n"), HasSubstr("/d/t.csv:4: has 2 fields, the first line has 3"));
  EXPECT_THAT(refusal("a,b,y\n1,2,3\n1,2,3,4\n"), HasSubstr("/d/t.csv:3: has 4 fields, the first line has 3"));
  EXPECT_THAT(refusal("a,b,y\n\"1\n\",2,3\n"), HasSubstr("/d/t.csv:2:1: column \"a\""));
}

TEST_F(Csv, WhatIsNoNumberIsNamedWithItsPlace) {
  const auto refused = [&](const std::string& field) { return refusal("a,b,y\n1,2,3\n1," + field + ",3\n"); };
  EXPECT_THAT(refused(""), AllOf(HasSubstr("/d/t.csv:3:3: column \"b\" is empty"), HasSubstr("fill it in, or remove")));
  EXPECT_THAT(refused("nan"), HasSubstr("/d/t.csv:3:3: column \"b\" holds \"nan\": a missing value"));
  for (const char* missing : {"NA", "NaN", "N/A", "null", "None", "?", "-"})
    EXPECT_THAT(refused(missing), HasSubstr("missing"));
  EXPECT_THAT(refused("inf"), HasSubstr("column \"b\" holds \"inf\", which is no (finite) number"));
  EXPECT_THAT(refused("red"), HasSubstr("column \"b\" holds \"red\", which is no (finite) number"));
  EXPECT_THAT(refused("1_000"), HasSubstr("no (finite) number"));
  EXPECT_THAT(refused("0x10"), HasSubstr("no (finite) number"));
  EXPECT_THAT(refused("1e39"), HasSubstr("column \"b\" holds 1e39, which is too large for float32"));
  EXPECT_THAT(refused("1e999"), HasSubstr("no (finite) number"));
  EXPECT_THAT(refusal("a,y\n1,x\n", {"y"}, {.target = TargetKind::kValues}),
              HasSubstr("/d/t.csv:2:3: column \"y\" holds \"x\""));
}

TEST_F(Csv, PlaceOfTheFileIsNamed) {
  recipe::DatasetSpec spec;
  spec.format = "csv";
  spec.target = {"y"};
  spec.path = "/nowhere.csv";
  try {
    open_dataset(fs_, spec, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_THAT(error.message(), HasSubstr("/nowhere.csv: no such file"));
  }
}

TEST_F(Csv, FingerprintFollowsTheContent) {
  const std::string original = open("a,y\n1,0\n2,1\n", {"y"})->info().fingerprint;
  EXPECT_EQ(original.size(), 32u);
  EXPECT_EQ(open("\"a\",y\r\n1.0,0\r\n\r\n2e0,1", {"y"})->info().fingerprint, original) << "not its spelling";
  EXPECT_NE(open("a,y\n1,0\n2,0\n", {"y"})->info().fingerprint, original);
  EXPECT_NE(open("a,y\n1,0\n2.5,1\n", {"y"})->info().fingerprint, original);
  EXPECT_NE(open("a,y\n2,1\n1,0\n", {"y"})->info().fingerprint, original);
  EXPECT_NE(open("a,y\n1,0\n2,1\n", {"y"}, {.target = TargetKind::kValues})->info().fingerprint, original);
}

TEST_F(Csv, StaysWhatItWas) {  // runs record the fingerprint, and a resumed one compares it
  EXPECT_EQ(open("a,b,y\n1,2.5,0\n-3,4,1\n", {"y"})->info().fingerprint, "ec79c1cb3235def5ade5977feffbc632");
  EXPECT_EQ(open("a,b,y\n1,2.5,0\n-3,4,1\n", {"y"}, {.target = TargetKind::kValues})->info().fingerprint,
            "4c0d34ae86ad34f0eaa9a4c624d9159a");
}

TEST_F(Csv, ManyRowsFillManyBlocks) {
  std::string text = "y";
  for (int c = 0; c < 499; ++c) text += str(",c", c);
  text += "\n";
  for (int r = 0; r < 5000; ++r) {  // 2.5 million numbers: three blocks
    text += str(r % 7);
    for (int c = 0; c < 499; ++c) text += str(",", (r * 13 + c) % 1000);
    text += "\n";
  }
  const auto set = open(text, {"y"});
  ASSERT_EQ(set->info().samples, 5000u);
  EXPECT_GE(set->info().bytes_in_memory, 5000u * 499 * 4);
  for (uint64_t r = 0; r < 5000; ++r) {
    ASSERT_EQ(set->label(r), static_cast<int64_t>(r % 7));
    for (uint64_t c = 0; c < 499; c += 83) ASSERT_EQ(set->features(r)[c], static_cast<float>((r * 13 + c) % 1000));
  }
}

TEST(Number, IsDecimalAndWhole) {
  EXPECT_EQ(parse_number("1.5"), 1.5);
  EXPECT_EQ(parse_number("+1.5"), 1.5);
  EXPECT_EQ(parse_number("-.5e-1"), -0.05);
  EXPECT_EQ(parse_number("1e-400"), 0.0);
  for (const char* text :
       {"", "+", "-", "+-1", "--1", "1,5", "1 2", "nan", "inf", "-inf", "1e999", "0x1", "1f", "e5"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace skytrain::data
