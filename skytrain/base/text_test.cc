#include "skytrain/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace skytrain {
namespace {

TEST(Text, StrAndJoin) {
  EXPECT_EQ(str("step ", 12, " of ", 20), "step 12 of 20");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

TEST(Text, ShortestDoubleReadsBackAsTheSameNumber) {
  for (const double value : {0.0, 1.0, 0.1, 1e-3, 3e-4, 2e-5, 1e-8, 600000.0, 1.0 / 3, 1e22, -2.5, 5e-324,
                             std::numeric_limits<double>::max()}) {
    EXPECT_EQ(std::strtod(shortest_double(value).c_str(), nullptr), value) << shortest_double(value);
  }
  EXPECT_EQ(shortest_double(0.001), "0.001");
  EXPECT_EQ(shortest_double(3e-4), "0.0003");
  EXPECT_EQ(shortest_double(1e-5), "1e-05");
  EXPECT_EQ(shortest_double(600000), "600000");
  EXPECT_EQ(shortest_double(NAN), "nan");
  EXPECT_EQ(shortest_double(-NAN), "nan");
}

TEST(Text, SizesTimesAndCountsReadWell) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(11.0 * 1024 * 1024), "11.0 MiB");
  EXPECT_EQ(human_bytes(1024 * 1024 - 1), "1.0 MiB") << "not 1024.0 KiB";
  EXPECT_EQ(human_seconds(0.0421), "42 ms");
  EXPECT_EQ(human_seconds(4.2), "4.2 s");
  EXPECT_EQ(human_seconds(59.97), "1 min 00 s") << "not 60.0 s";
  EXPECT_EQ(human_seconds(185), "3 min 05 s");
  EXPECT_EQ(human_seconds(3599.9), "1 h 00 min");
  EXPECT_EQ(human_seconds(7800), "2 h 10 min");
  EXPECT_EQ(human_seconds(INFINITY), "unknown");
  EXPECT_EQ(human_count(60000), "60,000");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1234567), "1,234,567");
  EXPECT_EQ(human_count(-1234), "-1,234");
  EXPECT_EQ(human_count(0.37), "0.37");
  EXPECT_EQ(human_count(15020.4), "15,020");
}

TEST(DidYouMean, FindsSlipsOfTheKeyboard) {
  const std::vector<std::string> known = {"adam", "sgd", "batch", "schedule"};
  EXPECT_EQ(closest("adamm", known), "adam");
  EXPECT_EQ(closest("Adam", known), "adam");
  EXPECT_EQ(closest("bath", known), "batch");
  EXPECT_EQ(closest("abtch", known), "batch") << "two neighbours swapped are one slip";
  EXPECT_EQ(closest("shedulle", known), "schedule");
  EXPECT_EQ(did_you_mean("adamm", known), " (did you mean \"adam\"?)");
}

TEST(DidYouMean, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> known = {"adam", "sgd", "lr"};
  EXPECT_EQ(closest("momentum", known), "");
  EXPECT_EQ(closest("x", known), "");
  EXPECT_EQ(closest("", known), "");
  EXPECT_EQ(closest("aadd", {"sgdd"}), "") << "two edits are too many for four letters";
  EXPECT_EQ(closest(std::string(100000, 'a'), known), "");
  EXPECT_EQ(did_you_mean("momentum", known), "");
  EXPECT_EQ(did_you_mean("label", {"\nlabel"}), " (did you mean \"\\x0Alabel\"?)") << "names come from files";
}

TEST(Printable, EscapesWhatTheTerminalWouldObey) {
  EXPECT_EQ(printable("plain text, größe, 学習"), "plain text, größe, 学習");
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0Ab\\x1B[31m");
  EXPECT_EQ(printable("\x7f"), "\\x7F");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xC2\\x9B") << "C1 control sequence introducer";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xE2\\x80\\xAE") << "right-to-left override";
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

TEST(Printable, EscapesInvalidUtf8AndCuts) {
  EXPECT_EQ(printable("a\xff"), "a\\xFF");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xC0\\xAF") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xED\\xA0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xe4\xbd"), "\\xE4\\xBD") << "cut short";
  EXPECT_EQ(printable("abcdef", 4), "abcd…");
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcé", 4), "abc…") << "no half character";
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(invalid_utf8_at("größe"), std::string_view::npos);
  EXPECT_EQ(invalid_utf8_at("ab\xff"), 2u);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("größe"), 5u);
  EXPECT_EQ(display_width("学習"), 4u);
  EXPECT_EQ(display_width("|███|"), 5u);
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdef", 4), "abc…");
  EXPECT_EQ(cut_to_width("学習率", 4), "学…") << "never wider than asked, rather one column less";
  EXPECT_EQ(cut_to_width("abc", 0), "");
}

TEST(Base64, MatchesRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xff\x00\xfe", 3)), "/wD+");
}

}  // namespace
}  // namespace skytrain
