#include "skytrain/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"

namespace skytrain {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParseJson, ReadsWhatIsValid) {
  const Json json = parse_json(R"({"a": [1, 2.5, true, null, "x"], "b": {"a": 1}})", "x");
  EXPECT_EQ(json["a"][1], 2.5);
  EXPECT_EQ(json["b"]["a"], 1);
  EXPECT_EQ(parse_json("18446744073709551615", "x"), 18446744073709551615u);
}

TEST(ParseJson, NamesPlaceReasonAndByte) {
  const std::string message = refusal("{\"a\": 1,,}");
  EXPECT_THAT(message, StartsWith("manifest.json: not valid JSON: "));
  EXPECT_THAT(message, HasSubstr("at byte 9"));
  EXPECT_THAT(message, testing::Not(HasSubstr("json.exception")));
}

TEST(ParseJson, RefusesWhatIsNotOneWholeDocument) {
  refusal("");
  refusal("{");
  refusal("{} {}");
  refusal("[1,]");
  refusal("nan");
  refusal("\"\xff\"");
  refusal("1e999");
  refusal("// comment\n1");
}

// One writer's key was repeated with another value; readers disagreed about which one counts.
TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"c": 1, "c": 2}})"),
            "manifest.json: not valid JSON: key \"c\" appears twice in one object");
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": 1, "b": {"a": 1}}])", "x")) << "the same key in different objects";
}

TEST(ParseJson, RefusesDeepNestingBeforeItHurts) {
  EXPECT_NO_THROW(parse_json(nested(64), "x"));
  EXPECT_THAT(refusal(nested(65)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(refusal(std::string(10'000'000, '[')), HasSubstr("nested deeper than 64 levels"));
}

// A list of 100,000 files took 250 MB and two seconds.
TEST(ParseJson, GivesElementsOfALongArrayOneByOne) {
  std::vector<std::string> elements;
  const auto parse = [&](std::string_view text) {
    elements.clear();
    return parse_json(text, "x", "list", [&](uint64_t i, const Json& value) {
      EXPECT_EQ(i, elements.size());
      elements.push_back(value.dump());
    });
  };
  const Json json =
      parse(R"({"a": [1, {"list": [2]}], "list": [{"list": [3, {"x": 4}]}, [5, [6]], 7, null], "z": [8]})");
  EXPECT_THAT(elements, testing::ElementsAre(R"({"list":[3,{"x":4}]})", "[5,[6]]", "7", "null"));
  EXPECT_EQ(json, Json::parse(R"({"a": [1, {"list": [2]}], "list": [], "z": [8]})"));
  EXPECT_EQ(parse(R"({"list": {"a": {"b": [1]}}})").dump(), R"({"list":{"a":{"b":[1]}}})");
  EXPECT_EQ(parse(R"([{"list": [1]}, [2]])").dump(), R"([{"list":[1]},[2]])");
  EXPECT_EQ(parse("1"), 1);
  EXPECT_TRUE(elements.empty());
  EXPECT_THROW(parse(R"({"list": [1], "list": [2]})"), Error);
  EXPECT_THROW(parse(R"({"list": [1)"), Error);
}

// The parser took the NUL for the end, and what followed went unseen.
TEST(Json, ANulIsNotTheEnd) {
  try {
    parse_json(std::string_view("{}\0junk", 7), "f.json");
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "f.json: not valid JSON: NUL at byte 2");
  }
}

}  // namespace
}  // namespace skytrain
