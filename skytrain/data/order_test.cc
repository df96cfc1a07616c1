#include "skytrain/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "skytrain/base/error.h"

namespace skytrain::data {
namespace {

std::vector<uint64_t> all(const Order& order) {
  std::vector<uint64_t> values(order.size());
  for (uint64_t i = 0; i < order.size(); ++i) values[i] = order[i];
  return values;
}

void expect_permutation(uint64_t size, uint64_t seed, uint64_t epoch) {
  const Order order(size, seed, epoch);
  std::vector<bool> seen(size, false);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t value = order[i];
    ASSERT_LT(value, size) << "size " << size << ", position " << i;
    ASSERT_FALSE(seen[value]) << "size " << size << ": " << value << " comes twice";
    seen[value] = true;
  }
}

TEST(Order, IsAPermutation) {
  for (uint64_t size = 1; size <= 300; ++size) {
    expect_permutation(size, 0, 0);
    expect_permutation(size, 7, 3);
  }
  expect_permutation(1'000'003, 7, 0);
}

TEST(Order, StaysWhatItWas) {  // checkpoints hold positions, so the order may never change
  const Order order(60000, /*seed=*/7, /*epoch=*/0);
  std::vector<uint64_t> first_ten(10);
  for (uint64_t i = 0; i < 10; ++i) first_ten[i] = order[i];
  EXPECT_EQ(first_ten, (std::vector<uint64_t>{2366, 10360, 31108, 48059, 9815, 23542, 54550, 50545, 15646, 21623}));
  EXPECT_EQ(all(Order(10, 0, 0)), (std::vector<uint64_t>{3, 2, 0, 6, 8, 4, 7, 5, 1, 9}));
}

TEST(Order, DiffersBetweenEpochsAndSeeds) {
  const auto base = all(Order(1000, 0, 0));
  for (auto [seed, epoch] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 1}, {1, 0}, {1, 1}, {~0ULL, 0}, {0, ~0ULL}}) {
    const auto other = all(Order(1000, seed, epoch));
    int same = 0;
    for (size_t i = 0; i < base.size(); ++i) same += base[i] == other[i];
    EXPECT_LE(same, 8) << "seed " << seed << ", epoch " << epoch;  // about 1 by chance
  }
  EXPECT_NE(all(Order(1000, 0, 1)), all(Order(1000, 1, 0)));  // seed and epoch don't play the same part
}

// A network of few rounds on a few bits can reach only some of the permutations, and then always the same ones.
TEST(Order, TinySizesReachEveryPermutationEqually) {
  for (uint64_t size : {2u, 3u, 4u}) {
    std::map<std::vector<uint64_t>, int> counts;
    const int draws = 24000;
    for (int epoch = 0; epoch < draws; ++epoch) ++counts[all(Order(size, 0, static_cast<uint64_t>(epoch)))];
    const int permutations = size == 2 ? 2 : size == 3 ? 6 : 24;
    ASSERT_EQ(counts.size(), static_cast<size_t>(permutations));
    const double expected = static_cast<double>(draws) / permutations;
    for (const auto& [order, count] : counts) EXPECT_NEAR(count, expected, 6 * std::sqrt(expected));
  }
}

TEST(Order, PositionTellsNothingOfTheSample) {
  // 32 x 32 cells of (position, sample): chi-square with 31 * 31 degrees of freedom; ± 6 standard deviations.
  const int cells = 32;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (uint64_t size : {60000u, 65536u, 100001u}) {
      const Order order(size, seed, 0);
      std::vector<double> table(cells * cells, 0);
      for (uint64_t i = 0; i < size; ++i) table[i * cells / size * cells + order[i] * cells / size] += 1;
      double chi2 = 0;
      const double expected = static_cast<double>(size) / (cells * cells), freedom = (cells - 1) * (cells - 1);
      for (double count : table) chi2 += (count - expected) * (count - expected) / expected;
      EXPECT_NEAR(chi2, freedom, 6 * std::sqrt(2 * freedom)) << "size " << size << ", seed " << seed;
    }
  }
}

TEST(Order, NeighboursAreFarApart) {
  const uint64_t size = 60000;
  const Order order(size, 0, 0);
  for (uint64_t shift : {1u, 2u, 3u, 64u, 256u}) {
    // Mean of the product of centred values, in units of its standard error.
    double sum = 0;
    uint64_t close = 0;
    const double middle = (size - 1) / 2.0, variance = (static_cast<double>(size) * size - 1) / 12.0;
    for (uint64_t i = 0; i + shift < size; ++i) {
      const double a = static_cast<double>(order[i]), b = static_cast<double>(order[i + shift]);
      sum += (a - middle) * (b - middle);
      close += std::fabs(a - b) < 10;
    }
    EXPECT_LT(std::fabs(sum / variance / std::sqrt(static_cast<double>(size))), 5) << "shift " << shift;
    EXPECT_NEAR(static_cast<double>(close), 18.0, 26.0) << "shift " << shift;  // 18 by chance
  }
}

// With a key that is only added, one epoch is the other one shifted.
TEST(Order, EpochsAreNotShiftsOfEachOther) {
  const uint64_t size = 4096;
  const auto a = all(Order(size, 3, 0)), b = all(Order(size, 3, 1));
  std::map<uint64_t, int> shifts;
  for (size_t i = 0; i < size; ++i) ++shifts[(a[i] + size - b[i]) % size];
  for (const auto& [shift, count] : shifts) EXPECT_LE(count, 12) << "shift " << shift;
}

TEST(Order, WorksForATrillionSamplesAndBeyond) {
  for (uint64_t size :
       {(uint64_t{1} << 40) - 87, uint64_t{1} << 40, (uint64_t{1} << 40) + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
    const Order order(size, 1, 2);
    std::vector<uint64_t> values;
    for (uint64_t i = 0; i < 1000; ++i) values.push_back(order[i]);
    for (uint64_t i = 0; i < 1000; ++i) values.push_back(order[size - 1 - i]);
    for (uint64_t value : values) EXPECT_LT(value, size);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
    EXPECT_LT(values[1000], size / 8 * 5);  // spread over the range, not huddled in a part of it
    EXPECT_GT(values[1000], size / 8 * 3);
  }
}

TEST(Order, RefusesAnEmptySet) { EXPECT_THROW(Order(0, 0, 0), Error); }

}  // namespace
}  // namespace skytrain::data
