#include "skytrain/train/evaluation_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace skytrain::train {
namespace {

double metric(const ClassCounts& counts, const std::string& name) {
  for (const auto& [own, value] : counts.metrics())
    if (own == name) return value;
  return -1;
}

std::vector<uint64_t> range(uint64_t begin, uint64_t count) {
  std::vector<uint64_t> indices(count);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

// Rows in which class `best` leads and the others follow in their order.
std::vector<float> rows(const std::vector<int64_t>& best, int64_t classes) {
  std::vector<float> out;
  for (const int64_t b : best)
    for (int64_t c = 0; c < classes; ++c) out.push_back(c == b ? -0.1f : -1.0f - float(c));
  return out;
}

// sklearn.metrics.f1_score([0, 0, 1, 2], [0, 1, 1, 1], average="macro") = (2/3 + 1/2 + 0) / 3
TEST(ClassCounts, MacroF1IsSklearns) {
  ClassCounts counts(4);  // class 3 does not occur: it does not count
  const std::vector<int64_t> labels = {0, 0, 1, 2};
  counts.add_batch(rows({0, 1, 1, 1}, 4).data(), labels.data(), range(0, 4));
  EXPECT_DOUBLE_EQ(metric(counts, "f1"), (2.0 / 3 + 0.5 + 0) / 3);
  EXPECT_DOUBLE_EQ(metric(counts, "top1"), 0.5);
  EXPECT_EQ(metric(counts, "top5"), -1) << "of 4 classes every answer is among the first 5";
  EXPECT_EQ(counts.confusion()[0 * 4 + 1], 1);
}

TEST(ClassCounts, TopFiveCountsLabelsAmongTheFiveLargest) {
  ClassCounts counts(8);
  // The order of classes is 7, 0, 1, 2, 3, 4, …: label 3 is fifth, label 4 sixth.
  const std::vector<int64_t> labels = {3, 4};
  counts.add_batch(rows({7, 7}, 8).data(), labels.data(), range(0, 2));
  EXPECT_DOUBLE_EQ(metric(counts, "top5"), 0.5);
  EXPECT_DOUBLE_EQ(metric(counts, "top1"), 0);
}

TEST(ClassCounts, HowBatchesAreDealtDoesNotMatter) {
  const int64_t classes = 7, samples = 300;
  std::vector<float> values;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < samples; ++i) {
    labels.push_back(i * i % classes);
    for (int64_t c = 0; c < classes; ++c) values.push_back(float(-std::abs(std::sin(double(i * 31 + c * 17)))));
  }
  ClassCounts whole(classes), first(classes), second(classes);
  whole.add_batch(values.data(), labels.data(), range(0, samples));
  for (int64_t begin = 0; begin < samples; begin += 50)
    (begin % 100 == 0 ? first : second)
        .add_batch(values.data() + begin * classes, labels.data() + begin, range(begin, 50));
  first.merge(second);
  EXPECT_EQ(first.metrics(), whole.metrics());
  EXPECT_EQ(first.confusion(), whole.confusion());
  ASSERT_EQ(whole.mistakes().size(), kMaxMistakes);
  for (size_t i = 0; i < kMaxMistakes; ++i) EXPECT_EQ(first.mistakes()[i].index, whole.mistakes()[i].index);
}

}  // namespace
}  // namespace skytrain::train
