#include "skytrain/observe/confusion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::observe {
namespace {

OrderedJson three_classes() {
  return OrderedJson::parse(R"({"classes": ["cat", "dog", "eel"], "confusion": [[8, 2, 0], [1, 9, 0], [0, 2, 0]]})");
}

TEST(Confusion, GivesRecallAndPrecisionByHand) {
  const auto results = class_results(read_confusion(three_classes()));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_DOUBLE_EQ(results[0].recall, 0.8);
  EXPECT_DOUBLE_EQ(results[0].precision, 8.0 / 9);
  EXPECT_DOUBLE_EQ(results[0].f1, 16.0 / 19);
  EXPECT_EQ(results[1].samples, 10u);
  EXPECT_EQ(results[1].predicted, 13u);
  EXPECT_DOUBLE_EQ(results[2].recall, 0);
  EXPECT_TRUE(std::isnan(results[2].precision));  // never predicted: not 0, unknown
}

TEST(Confusion, NamesTheMostFrequentMistakes) {
  const auto mistakes = most_frequent_mistakes(read_confusion(three_classes()), 2);
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].truth, 0u);
  EXPECT_EQ(mistakes[0].predicted, 1u);
  EXPECT_EQ(mistakes[1].truth, 2u);
  EXPECT_EQ(mistakes[1].count, 2u);
}

TEST(Confusion, SaysWhatIsWrongWithADamagedOne) {
  OrderedJson evaluation = three_classes();
  evaluation["confusion"][1] = {1, 2};
  EXPECT_EQ(read_confusion(evaluation).problem, "row 1 does not have 3 columns");
  EXPECT_EQ(read_confusion(evaluation).size(), 0u);
  evaluation["confusion"][1] = {1, 2, 0.5};
  EXPECT_EQ(read_confusion(evaluation).problem, "row 1 holds something else than counts");
  evaluation["classes"] = {"cat"};
  EXPECT_EQ(read_confusion(evaluation).problem, "it has 3 rows for 1 classes");
  EXPECT_EQ(read_confusion(nullptr).problem, "");
}

}  // namespace
}  // namespace skytrain::observe
