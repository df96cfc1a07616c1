#include "skytrain/recipe/scalar.h"

#include <gtest/gtest.h>

#include <vector>

namespace skytrain::recipe {
namespace {

const std::vector<std::string> kUnits = {"steps", "samples", "epochs", "%", "s", "min", "h", "d"};

// `1e-3` was a string in YAML 1.1 and crashed the optimizer; a recipe reads YAML 1.2.
TEST(Real, ReadsTheNumbersOfYaml12) {
  const std::pair<const char*, double> cases[] = {
      {"1e-3", 0.001}, {"2e-5", 2e-5}, {"1E-3", 0.001}, {".001", 0.001}, {"+0.01", 0.01},  {"1.", 1},
      {"5.0e-1", 0.5}, {"1", 1},       {"3e-4", 3e-4},  {"1e+0", 1},     {"-2.5", -2.5},   {"0", 0},
      {"-0.0", 0},     {"007", 7},     {"1.e3", 1000},  {".5E1", 5},     {"1e308", 1e308},
  };
  for (const auto& [text, expected] : cases) {
    double value = -1;
    const auto refused = read_real(text, &value);
    EXPECT_FALSE(refused) << text << ": " << (refused ? refused->what : "");
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(Real, RefusesEverythingElse) {
  for (const char* text :
       {"",         "1e",    "1,5",   "0.1.2", "1e-3x",    "1e999",  "-1e999", "1e-999", ".nan", ".NaN",  "nan",
        ".inf",     "-.inf", "+.INF", "inf",   "Infinity", "0x1p-3", "0x10",   "0o17",   "0b1",  "１e-3", "1 e-3",
        "1_000e-6", "1e1e1", "--1",   "+-1",   "+",        ".",      "e5",     ".e5",    " 1",   "1 ",    "1e+",
        "1f",       "1d0",   "½",     "1\n",   "1e-3 # x", "true",   "null",   "~"}) {
    double value;
    EXPECT_TRUE(read_real(text, &value)) << "accepted: " << text;
  }
  double value;
  EXPECT_TRUE(read_real(std::string_view("1\0", 2), &value));
}

TEST(Real, SaysWhatToWriteInstead) {
  double value;
  EXPECT_EQ(read_real("1,5", &value)->hint, "decimals have a point: 1.5");
  EXPECT_EQ(read_real("1_000", &value)->hint, "digits only, without underscores: 1000000 or 1e6");
  EXPECT_EQ(read_real("１e-3", &value)->hint, "ASCII digits only; these are other characters that look like digits");
  EXPECT_EQ(read_real("1e", &value)->what, "\"1e\" is not a number");
  EXPECT_EQ(read_real(".nan", &value)->what, "\".nan\" is not a finite number");
  EXPECT_EQ(read_real("1e999", &value)->what, "\"1e999\" is beyond what a double can hold");
}

TEST(Integer, ReadsDigits) {
  const std::pair<const char*, int64_t> cases[] = {{"0", 0},
                                                   {"8", 8},
                                                   {"+8", 8},
                                                   {"-8", -8},
                                                   {"9223372036854775807", INT64_MAX},
                                                   {"-9223372036854775808", INT64_MIN}};
  for (const auto& [text, expected] : cases) {
    int64_t value = 99;
    EXPECT_FALSE(read_integer(text, &value)) << text;
    EXPECT_EQ(value, expected);
  }
}

// `--set train.batch=8.0` must not become 8 in one place and be refused in another.
TEST(Integer, RefusesOtherSpellingsWithTheDigitsToWrite) {
  int64_t value;
  EXPECT_EQ(read_integer("8.0", &value)->hint, "write 8");
  EXPECT_EQ(read_integer("1e1", &value)->hint, "write 10");
  EXPECT_EQ(read_integer("8.5", &value)->hint, "");
  for (const char* text : {"", "-", "+", "0x10", "1_000", "８", "010", "-01", "1 0", "eight", "9223372036854775808"}) {
    EXPECT_TRUE(read_integer(text, &value)) << "accepted: " << text;
  }
}

TEST(Boolean, IsThatOfYaml12) {
  bool value = false;
  for (const char* text : {"true", "True", "TRUE"}) {
    value = false;
    EXPECT_FALSE(read_boolean(text, &value));
    EXPECT_TRUE(value);
  }
  for (const char* text : {"false", "False", "FALSE"}) {
    value = true;
    EXPECT_FALSE(read_boolean(text, &value));
    EXPECT_FALSE(value);
  }
  for (const char* text : {"yes", "no", "on", "off", "y", "n", "1", "0", "tRUE", "", "null"}) {
    EXPECT_TRUE(read_boolean(text, &value)) << "accepted: " << text;
  }
}

TEST(ReadDuration, TakesEveryUnit) {
  using Unit = Duration::Unit;
  const std::pair<const char*, Duration> cases[] = {
      {"500 steps", {500, Unit::kSteps}},   {"1 step", {1, Unit::kSteps}},
      {"0 steps", {0, Unit::kSteps}},       {"3 epochs", {3, Unit::kEpochs}},
      {"0.5 epochs", {0.5, Unit::kEpochs}}, {"60000 samples", {60000, Unit::kSamples}},
      {"5%", {5, Unit::kPercent}},          {"5 %", {5, Unit::kPercent}},
      {"2.5%", {2.5, Unit::kPercent}},      {"10 min", {600, Unit::kSeconds}},
      {"10min", {600, Unit::kSeconds}},     {"1.5 h", {5400, Unit::kSeconds}},
      {"30 s", {30, Unit::kSeconds}},       {"2 days", {172800, Unit::kSeconds}},
      {"1e3 steps", {1000, Unit::kSteps}},
  };
  for (const auto& [text, expected] : cases) {
    Duration value;
    const auto refused = read_duration(text, kUnits, &value);
    EXPECT_FALSE(refused) << text << ": " << (refused ? refused->what : "");
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(ReadDuration, RefusesWhatHasNoUnitOrAWrongOne) {
  Duration value;
  EXPECT_EQ(read_duration("5", kUnits, &value)->what, "\"5\" has no unit");
  EXPECT_EQ(read_duration("5 parsecs", kUnits, &value)->what, "unknown unit \"parsecs\"");
  EXPECT_EQ(read_duration("5 parsecs", kUnits, &value)->hint, "known: steps, samples, epochs, %, s, min, h, d");
  EXPECT_EQ(read_duration("5 setps", kUnits, &value)->what, "unknown unit \"setps\" (did you mean \"steps\"?)");
  EXPECT_EQ(read_duration("-1 steps", kUnits, &value)->what, "\"-1 steps\" is negative");
  EXPECT_EQ(read_duration("1.5 steps", kUnits, &value)->what, "\"1.5 steps\" is not a whole number of steps");
  for (const char* text :
       {"", "steps", "nan steps", ".inf s", "1e999 s", "1e308 d", "5 % 5", "5 steps 3", "0x5 steps"}) {
    EXPECT_TRUE(read_duration(text, kUnits, &value)) << "accepted: " << text;
  }
}

TEST(NeedsQuotes, WhereAReaderWouldSeeSomethingElseThanAText) {
  for (const char* text : {"",   "null", "~",   "true", "FALSE", "1",     "1e3", ".nan", "-.inf", "-x", " x",
                           "x ", "a: b", "a#b", "[x]",  "x,y",   "\"x\"", "@x",  "a\nb", "größe", "%x", "=x"}) {
    EXPECT_TRUE(needs_quotes(text)) << text;
  }
  for (const char* text : {"mnist", "a=b", "/data/mnist-1.0/x y", "5%", "1 epoch", "600 s", "v1.2", "yes", "1.2.3"}) {
    EXPECT_FALSE(needs_quotes(text)) << text;
  }
}

TEST(Bytes, HaveAUnitAndReadBackAsTheSame) {
  for (const auto& [text, bytes] : {std::pair<const char*, uint64_t>{"512 MiB", 512u << 20},
                                    {"1.5 GiB", 3u << 29},
                                    {"4GB", 4'000'000'000},
                                    {"1 B", 1},
                                    {"2 TiB", uint64_t{2} << 40}}) {
    uint64_t read = 0, again = 0;
    EXPECT_FALSE(read_bytes(text, &read)) << text;
    EXPECT_EQ(read, bytes) << text;
    EXPECT_FALSE(read_bytes(bytes_text(read), &again));
    EXPECT_EQ(again, bytes) << bytes_text(read);
  }
  EXPECT_EQ(bytes_text(1536u << 20), "1536 MiB");
  for (const char* text : {"512", "", "MiB", "1 XB", "0 MiB", "-1 GiB", "1e30 GiB", "0.1 B", "1,5 GiB"}) {
    uint64_t ignored = 0;
    EXPECT_TRUE(read_bytes(text, &ignored)) << text;
  }
  uint64_t ignored = 0;
  EXPECT_NE(read_bytes("1 Gib", &ignored)->what.find("did you mean \"GiB\"?"), std::string::npos);
}

}  // namespace
}  // namespace skytrain::recipe
