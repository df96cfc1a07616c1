#include "skytrain/data/jsonl_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Kind = JsonlReader::Kind;

// `key=1 2 3` of each field, one text a record.
std::vector<std::string> read(std::string_view text) {
  MemoryFileSystem fs;
  put_file(fs, "/t/a.jsonl", text);
  JsonlReader reader(fs, "/t/a.jsonl");
  std::vector<std::string> records;
  while (reader.next()) {
    std::string record;
    for (const JsonlReader::Field& field : reader.fields()) {
      record += (record.empty() ? "" : " ") + field.key;
      if (field.kind == Kind::kText) record += "'" + field.text + "'";
      if (field.kind == Kind::kOther) record += "(" + field.text + ")";
      if (field.kind == Kind::kNumber) record += "=" + shortest_double(reader.numbers(field)[0]);
      if (field.kind != Kind::kNumbers) continue;
      record += "[";
      for (const double number : reader.numbers(field)) record += shortest_double(number) + ",";
      record += "]";
    }
    records.push_back(record);
  }
  EXPECT_FALSE(reader.next());
  return records;
}

std::string refusal(std::string_view text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problem().find('\n'), std::string::npos);
    return error.message();
  }
  return "accepted";
}

TEST(JsonlReader, ReadsOneObjectALine) {
  EXPECT_THAT(read("{\"a\": 1, \"b\": [2, -3.5e1], \"c\": \"x\\n\\u00e4\"}\n{}\n{\"d\":[]}"),
              ElementsAre("a=1 b[2,-35,] c'x\n\xc3\xa4'", "", "d[]"));
  EXPECT_THAT(read("\xef\xbb\xbf"
                   "{\"a\": 18446744073709551615}\r\n\r\n \t\n{\"b\" : -0.0 }\r\n"),
              ElementsAre("a=1.8446744073709552e+19", "b=-0"));
  EXPECT_THAT(read("\n\n"), ElementsAre());
}

TEST(JsonlReader, WhatIsNoNumberOrTextIsSaidInWords) {
  EXPECT_THAT(
      read(R"({"n": null, "t": true, "o": {"a": [1, {"b": 2}]}, "l": [1, "x", 2], "m": [[1], 2], "k": [null]})"),
      ElementsAre("n(null: a missing value) t(true) o(an object) l(an array with text at place 1) "
                  "m(an array with an array at place 0) k(an array with null: a missing value at place 0)"));
}

TEST(JsonlReader, PlacesAreThoseOfAnEditor) {
  MemoryFileSystem fs;
  put_file(fs, "/t/a.jsonl", "\n{\"a\" : 1, \"q\\\"\\\\\":\"x\"}\n");
  JsonlReader reader(fs, "/t/a.jsonl");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.where(), "/t/a.jsonl:2");
  EXPECT_EQ(reader.where(reader.fields()[0]), "/t/a.jsonl:2:8");
  EXPECT_EQ(reader.fields()[0].key_at, 2u);
  EXPECT_EQ(reader.fields()[1].key, "q\"\\");
  EXPECT_EQ(reader.fields()[1].key_at, 11u);
  EXPECT_EQ(reader.fields()[1].value_at, 19u);
}

TEST(JsonlReader, WhatIsNoJsonIsNamedWithItsPlace) {
  EXPECT_THAT(refusal("{\"a\": 1}\n{\"a\": 1,,}\n"), HasSubstr("/t/a.jsonl:2:9: not valid JSON: "));
  EXPECT_THAT(refusal("{\n  \"a\": 1\n}\n"),
              AllOf(HasSubstr("/t/a.jsonl:1:1: not valid JSON"), HasSubstr("each line is one JSON object")));
  EXPECT_THAT(refusal("{\"a\": 1} {\"a\": 2}\n"), HasSubstr("/t/a.jsonl:1:10: not valid JSON"));
  EXPECT_THAT(refusal("[\n{\"a\": 1},\n"),
              AllOf(HasSubstr("/t/a.jsonl:1:1: is no JSON object"), HasSubstr("without its brackets")));
  EXPECT_THAT(refusal("{}\n  7\n"), HasSubstr("/t/a.jsonl:2:3: is no JSON object"));
  EXPECT_THAT(refusal("\"x\"\n"), HasSubstr("is no JSON object"));
  EXPECT_THAT(refusal("{\"a\": \"\xff\"}\n"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(std::string_view("{\"a\": 1}\0\n", 10)), HasSubstr("/t/a.jsonl:1:9: is a NUL byte"));
}

TEST(JsonlReader, NumbersAreFinite) {
  EXPECT_THAT(refusal("{\"a\": NaN}\n"), HasSubstr("/t/a.jsonl:1:7: key \"a\" holds NaN"));
  EXPECT_THAT(refusal("{\"a\": [1, -Infinity]}\n"), HasSubstr("/t/a.jsonl:1:12: key \"a\" holds Infinity"));
  EXPECT_THAT(refusal("{\"a\": 1e999}\n"), HasSubstr("key \"a\" holds a number that is too large"));
}

TEST(JsonlReader, AKeyIsThereOnce) {
  EXPECT_THAT(refusal("{\"a\": 1, \"a\": 1}\n"), HasSubstr("/t/a.jsonl:1:10: key \"a\" is there twice"));
  EXPECT_THAT(refusal("{\"a\": 1, \"b\": 1, \"c\": 1}\n{\"c\": 1}\n{\"c\": 1, \"b\": 1, \"c\": 1}\n"),
              HasSubstr("/t/a.jsonl:3:18: key \"c\" is there twice"));
  EXPECT_THAT(refusal("{\"a\": 1, \"b\": 1}\n{\"a\": 1, \"b\": 1, \"a\": 1}\n"),
              HasSubstr("/t/a.jsonl:2:18: key \"a\""));
}

TEST(JsonlReader, WhatIsNoTextIsNamed) {
  EXPECT_THAT(refusal(""), HasSubstr("/t/a.jsonl: is empty"));
  EXPECT_THAT(refusal(std::string_view("\xff\xfe{\0", 4)), HasSubstr("is UTF-16"));
  EXPECT_THAT(refusal(gzip("{}\n")), HasSubstr("is no JSONL file: it is gzip"));
  EXPECT_THAT(refusal("<!DOCTYPE html>"), HasSubstr("looks like HTML"));
  MemoryFileSystem fs;
  fs.make_directories("/t");
  EXPECT_THROW(JsonlReader(fs, "/t"), Error);
  EXPECT_THROW(JsonlReader(fs, "/t/none"), Error);
}

TEST(JsonlReader, LongLinesAndManyKeysDoNotEatTheMemory) {
  EXPECT_THAT(refusal("{}\n{\"a\": \"" + std::string(JsonlReader::kMaxLine + 4, 'x')),
              HasSubstr("/t/a.jsonl:2:1: is a line of more than 64.0 MiB"));
  std::string many = "{\"0\": 0";
  for (size_t i = 1; i <= JsonlReader::kMaxFields; ++i) many += str(",\"", i, "\":0");
  EXPECT_THAT(refusal(many + "}\n"), HasSubstr("has more than 65536 keys"));
  EXPECT_EQ(refusal("{\"a\": " + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}\n"), "accepted");
}

// Lines that end where a piece of the file ends.
TEST(JsonlReader, PiecesDoNotShow) {
  std::mt19937 random(3);
  std::string text;
  std::vector<std::string> expected;
  while (text.size() < (5 << 20)) {
    const std::string value(random() % 3 == 0 ? random() % 100000 : random() % 40, 'z');
    text += str("{\"a\": \"", value, "\", \"b\": ", expected.size(), "}", random() % 2 ? "\r\n" : "\n");
    expected.push_back(str("a'", value, "' b=", expected.size()));
  }
  EXPECT_EQ(read(text), expected);
}

TEST(JsonlReader, AnyBytesAreReadOrRefused) {
  std::mt19937 random(17);
  const std::string_view alphabet("{}[]\"a1,:\n\\ ");
  int read_whole = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "{\"k\":[1]";
    for (size_t n = random() % 8; n > 0; --n) text += alphabet[random() % alphabet.size()];
    read_whole += refusal(text + "}") == "accepted";
  }
  EXPECT_GT(read_whole, 1000);
  EXPECT_LT(read_whole, 19000);
}

}  // namespace
}  // namespace skytrain::data
