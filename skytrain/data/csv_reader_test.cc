#include "skytrain/data/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "skytrain/base/text.h"
#include "skytrain/data/dataset_test_data.h"
#include "skytrain/data/idx_test_data.h"

namespace skytrain::data {
namespace {

using ::testing::HasSubstr;

using Records = std::vector<std::vector<std::string>>;

Records read(std::string_view text) {
  MemoryFileSystem fs;
  put_file(fs, "/t/a.csv", text);
  CsvReader reader(fs, "/t/a.csv");
  Records records;
  while (reader.next()) {
    records.emplace_back();
    for (const auto& field : reader.fields()) records.back().emplace_back(field.text);
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

TEST(CsvReader, ReadsFieldsAndQuotes) {
  EXPECT_EQ(read("a,b\n1,2\n"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a,b\r\n1,2"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("\"a,b\",\"c\"\"d\",\"\"\n"), (Records{{"a,b", "c\"d", ""}}));
  EXPECT_EQ(read("\"two\nlines\",\"\"\"\"\r\n"), (Records{{"two\nlines", "\""}}));
  EXPECT_EQ(read(",\n,,\n"), (Records{{"", ""}, {"", "", ""}}));
  EXPECT_EQ(read("a,\n"), (Records{{"a", ""}}));
  EXPECT_EQ(read("\"x\""), (Records{{"x"}}));
}

TEST(CsvReader, BlanksAroundFieldsAndEmptyLinesDoNotCount) {
  EXPECT_EQ(read(" a ,\tb\n\n  \n\r\n \"c \" , d\n\n"), (Records{{"a", "b"}, {"c ", "d"}}));
  EXPECT_EQ(read("\"\"\n"), (Records{{""}})) << "a quoted field is one";
}

TEST(CsvReader, ByteOrderMarkAndLeadingCommentsArePassedOver) {
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a,b\n"),
            (Records{{"a", "b"}}));
  EXPECT_EQ(read("# the last digit is the class code, always\n#\n1,2\n#3,4\n"), (Records{{"1", "2"}, {"#3", "4"}}));
  EXPECT_EQ(read("\xef\xbb\xbf# one\na\n"), (Records{{"a"}}));
  EXPECT_EQ(read("# nothing else"), Records{});
  EXPECT_EQ(read("# nothing else\n"), Records{});
  const std::string long_comment = "#" + std::string(3 << 20, 'x') + "\n";
  EXPECT_EQ(read(long_comment + long_comment + "a\n"), (Records{{"a"}}));
}

TEST(CsvReader, PlacesAreThoseOfAnEditor) {
  MemoryFileSystem fs;
  put_file(fs, "/t/a.csv", "# c\n\na,\"b\nc\",d\n\n x\n");
  CsvReader reader(fs, "/t/a.csv");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.where(), "/t/a.csv:3");
  EXPECT_EQ(reader.where(reader.fields()[1]), "/t/a.csv:3:3");
  EXPECT_EQ(reader.where(reader.fields()[2]), "/t/a.csv:4:4");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.where(), "/t/a.csv:6");
  EXPECT_EQ(reader.where(reader.fields()[0]), "/t/a.csv:6:1");
}

TEST(CsvReader, BadQuotesAreNamedWithTheirPlace) {
  EXPECT_THAT(refusal("a,b\n1,\"2\n"), HasSubstr("/t/a.csv:2:3: the quote is not closed"));
  EXPECT_THAT(refusal("a\n\"1\"2\n"), HasSubstr("/t/a.csv:2:4: text follows the closing quote"));
  EXPECT_THAT(refusal("a\n\"x\ny\" z\n"), HasSubstr("/t/a.csv:3:4: text follows the closing quote"));
  EXPECT_THAT(refusal("a\n5\" pipe\n"), HasSubstr("/t/a.csv:2:2: a quote stands within a field"));
}

TEST(CsvReader, WhatIsNoTextIsNamed) {
  EXPECT_THAT(refusal(std::string_view("a,b\n1,\0\n", 8)), HasSubstr("/t/a.csv:2:3: is a NUL byte"));
  EXPECT_THAT(refusal("a\rb\rc\r"), HasSubstr("/t/a.csv:1:2: a carriage return stands without a line feed"));
  EXPECT_EQ(refusal("a\nb\r"), "accepted") << "cut in a CRLF";
  EXPECT_THAT(refusal(""), HasSubstr("/t/a.csv: is empty"));
  EXPECT_THAT(refusal(std::string_view("\xff\xfe"
                                       "a\0",
                                       4)),
              HasSubstr("is UTF-16"));
  EXPECT_THAT(refusal(gzip("a,b\n")), HasSubstr("is no CSV file: it is gzip"));
  EXPECT_THAT(refusal("PK\x03\x04xlsx"), HasSubstr("is a ZIP archive"));
  EXPECT_THAT(refusal("<!DOCTYPE html>"), HasSubstr("looks like HTML"));
  EXPECT_EQ(refusal("größe,länge\n1,2\n"), "accepted");
  MemoryFileSystem fs;
  fs.make_directories("/t");
  EXPECT_THROW(CsvReader(fs, "/t"), Error);
  EXPECT_THROW(CsvReader(fs, "/t/none"), Error);
}

TEST(CsvReader, ARecordWithoutEndDoesNotEatTheMemory) {
  EXPECT_THAT(refusal("a\n\"" + std::string(CsvReader::kMaxRecord * 2 + 4, 'x')),
              HasSubstr("/t/a.csv:2:1: is a record of more than 64.0 MiB"));
}

// Fields that end where a piece of the file ends.
TEST(CsvReader, PiecesDoNotShow) {
  std::mt19937 random(3);
  const std::vector<std::string> parts = {"a", "\"x\"\"y\"", "12.5", "\"l\r\nm\"", "", " b ", "\"\""};
  const std::vector<std::string> meant = {"a", "x\"y", "12.5", "l\r\nm", "", "b", ""};
  std::string text = "first,second\n";
  Records expected = {{"first", "second"}};
  while (text.size() < (5 << 20)) {
    expected.emplace_back();
    for (const char* end : {",", random() % 2 ? "\r\n" : "\n"}) {
      const size_t part = random() % parts.size();
      text += parts[part] + end;
      expected.back().push_back(meant[part]);
    }
    if (random() % 1000 == 0) {
      const std::string large(random() % (1 << 21), 'z');
      text += str("\"", large, "\",", large, "\n");
      expected.push_back({large, large});
    }
  }
  const Records records = read(text);
  ASSERT_EQ(records.size(), expected.size());
  for (size_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i], expected[i]) << "record " << i;
}

TEST(CsvReader, AnyBytesAreReadOrRefused) {
  std::mt19937 random(17);
  const std::string_view alphabet("a1,,\"\"\n\r \0#;", 12);
  int read_whole = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "h";
    for (size_t n = random() % 24; n > 0; --n) text += alphabet[random() % alphabet.size()];
    read_whole += refusal(text) == "accepted";
  }
  EXPECT_GT(read_whole, 2000);
  EXPECT_LT(read_whole, 18000);
}

}  // namespace
}  // namespace skytrain::data
