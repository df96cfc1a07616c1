#include "skytrain/launch/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace skytrain::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class LineSplitterTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_;
  LineSplitter splitter_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(LineSplitterTest, LinesAreWholeHoweverTheyArrive) {
  for (const char c : std::string("one\ntwo\r\n\nthree")) splitter_.feed(std::string_view(&c, 1), 0);
  EXPECT_THAT(lines_, ElementsAre("one", "two", ""));
  splitter_.finish();
  EXPECT_THAT(lines_, ElementsAre("one", "two", "", "three"));
  splitter_.finish();
  EXPECT_THAT(lines_, SizeIs(4));
}

TEST_F(LineSplitterTest, ALongLineTakesBoundedMemory) {
  const std::string piece(10'000, 'x');
  size_t fed = 0;
  for (int i = 0; i < 100; ++i, fed += piece.size()) splitter_.feed(piece, 0);
  splitter_.feed("\nnext\n", 0);
  size_t given = 0;
  for (const std::string& line : lines_) {
    EXPECT_LE(line.size(), LineSplitter::kLongestLine);
    given += line.size();
  }
  EXPECT_EQ(given, fed + 4);
  EXPECT_EQ(lines_.back(), "next");
}

TEST_F(LineSplitterTest, ALineOfExactlyTheLimitStaysOne) {
  splitter_.feed(std::string(LineSplitter::kLongestLine, 'x') + "\n", 0);
  EXPECT_THAT(lines_, SizeIs(1));
}

// tqdm wrote ten states a second into a log that nobody could read.
TEST_F(LineSplitterTest, AProgressBarComesAtACalmRateAndItsLastStateAlways) {
  for (int i = 0; i < 100; ++i) splitter_.feed("\r" + std::to_string(i) + "%", 0.1 * i);
  splitter_.feed("\n", 10);
  EXPECT_THAT(lines_, ElementsAre("0%", "50%", "99%"));
}

}  // namespace
}  // namespace skytrain::launch
