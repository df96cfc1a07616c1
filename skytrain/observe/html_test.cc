#include "skytrain/observe/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "skytrain/observe/flatten.h"

namespace skytrain::observe {
namespace {

TEST(Html, EscapesWhatMarkupIsMadeOf) {
  EXPECT_EQ(escape("<a href=\"x\" b='y'>&amp;"), "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape("Größe 漢字 🙂"), "Größe 漢字 🙂");
  EXPECT_EQ(escape("a\xff"
                   "b\x01\n"),
            "a\\xFFb\\x01\\x0A");
}

TEST(Html, CutsLongTextButNeverAnEntity) { EXPECT_EQ(escape("<<<<<<", 3), "&lt;&lt;&lt;…"); }

TEST(Html, KeepsTheLinesOfPreformattedText) { EXPECT_EQ(escape_lines("a: <1>\n\tb\r\n"), "a: &lt;1&gt;\n\tb\\x0D\n"); }

TEST(Html, DataCannotEndItsScriptElement) {
  const OrderedJson evil = {{"</script><!--", "]]>&<script>\xe2\x80\xa8"}, {"bad", "\xff"}, {"nan", std::nan("")}};
  const std::string text = script_json(evil);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const OrderedJson back = OrderedJson::parse(text);
  EXPECT_EQ(back["</script><!--"], "]]>&<script>\xe2\x80\xa8");
  EXPECT_TRUE(back["nan"].is_null());
}

TEST(Html, ShowsNumbersForPeople) {
  EXPECT_EQ(significant(0.0812345), "0.08123");
  EXPECT_EQ(significant(1.2e-5, 2), "1.2e-05");
  EXPECT_EQ(significant(std::nan("")), "–");
  EXPECT_EQ(percent(0.97314), "97.31 %");
  EXPECT_EQ(percent(1e308, 0).back(), '%');
  EXPECT_EQ(count(60000), "60,000");
  EXPECT_EQ(count(std::numeric_limits<double>::infinity()), "–");
}

TEST(Flatten, NamesEveryValueByItsPath) {
  const OrderedJson json = OrderedJson::parse(R"({"a": {"b": 1, "e": {}}, "c": [2, "x"], "d": [{"k": null}, 0.001]})");
  using Line = std::pair<std::string, std::string>;
  EXPECT_THAT(flatten(json), testing::ElementsAre(Line{"a.b", "1"}, Line{"a.e", "{}"}, Line{"c", "[2, x]"},
                                                  Line{"d[0].k", "null"}, Line{"d[1]", "0.001"}));
  EXPECT_EQ(flatten(json, 2).size(), 3u);
  EXPECT_TRUE(flatten(nullptr).empty());
}

}  // namespace
}  // namespace skytrain::observe
