#include "skytrain/tensor/memory_budget.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace skytrain::tensor {
namespace {

constexpr int64_t kMiB = 1 << 20;

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }

class MemoryBudget : public testing::Test {
 protected:
  MemoryBudget() {
    install_memory_budget();
    take_last_out_of_memory();
  }
  ~MemoryBudget() override { set_memory_budget(std::nullopt); }
  uint64_t live() const { return memory_use().live; }
};

// Must be the first of this process.
TEST(MemoryBudgetBefore, CountsNothingUnlessInstalled) {
  const at::Tensor held = bytes(kMiB);
  EXPECT_EQ(memory_use().live, 0u);
  EXPECT_EQ(memory_use().peak, 0u);
  set_memory_budget(1);
  EXPECT_NO_THROW(bytes(kMiB));
  set_memory_budget(std::nullopt);
}

TEST_F(MemoryBudget, CountsWhatIsLiveAndItsPeak) {
  const uint64_t before = live();
  reset_peak_memory();
  {
    const at::Tensor a = bytes(3 * kMiB), view = a.narrow(0, 0, 10);
    EXPECT_NEAR(double(live() - before), 3 * kMiB, 8192) << "a view takes nothing";
    const at::Tensor b = bytes(kMiB);
  }
  EXPECT_EQ(live(), before);
  EXPECT_NEAR(double(memory_use().peak - before), 4 * kMiB, 16384);
  reset_peak_memory();
  EXPECT_EQ(memory_use().peak, before);
}

TEST_F(MemoryBudget, KeepsTheAlignment) {
  for (const int64_t size : {1, 3, 63, 64, 65, 1000, 4097, 1 << 20})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes(size).const_data_ptr()) % 64, 0u) << size;
  EXPECT_EQ(bytes(0).numel(), 0);
}

TEST_F(MemoryBudget, ServesRawAllocations) {
  const uint64_t before = live();
  c10::Allocator* const allocator = c10::GetCPUAllocator();
  void* const block = allocator->raw_allocate(kMiB);
  EXPECT_GE(live() - before, uint64_t(kMiB));
  allocator->raw_deallocate(block);
  EXPECT_EQ(live(), before);
  const at::Tensor grown = bytes(100);
  grown.resize_({kMiB});  // reallocates
  EXPECT_EQ(grown.numel(), kMiB);
}

TEST_F(MemoryBudget, RefusesWhatExceedsTheBudgetAndOnlyThat) {
  const uint64_t before = live(), budget = before + 4 * kMiB;
  set_memory_budget(budget);
  const at::Tensor held = bytes(kMiB);
  try {
    bytes(8 * kMiB);
    FAIL() << "8 MiB went into 4";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), uint64_t(8 * kMiB));
    EXPECT_EQ(error.budget(), budget);
    EXPECT_NEAR(double(error.live() - before), kMiB, 8192);
    EXPECT_NE(std::string(error.what()).find("8.0 MiB more"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("exceed the budget"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(bytes(2 * kMiB)) << "what fits still goes";
  set_memory_budget(std::nullopt);
  EXPECT_NO_THROW(bytes(8 * kMiB));
}

TEST_F(MemoryBudget, TellsWhatTheMachineRefuses) {
  try {
    bytes(int64_t(1) << 50);
    FAIL() << "a PiB";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), uint64_t(1) << 50);
    EXPECT_EQ(error.budget(), std::nullopt);
  }
  ASSERT_TRUE(take_last_out_of_memory().has_value());
  EXPECT_FALSE(take_last_out_of_memory().has_value()) << "told once";
}

// Convolution, activation, linear layer and their gradients, refused at every size of budget between nothing and
// enough: each time nothing is left behind, and a smaller operation works right after.
TEST_F(MemoryBudget, AnOperatorThatIsRefusedLeaksNothing) {
  const at::Tensor images = at::empty({8, 3, 32, 32}, at::kFloat).uniform_(-1, 1, at::detail::createCPUGenerator(1));
  const at::Tensor weight =
      at::empty({16, 3, 3, 3}, at::kFloat).uniform_(-1, 1, at::detail::createCPUGenerator(2)).set_requires_grad(true);
  const at::Tensor last = at::zeros({10, 16 * 32 * 32}, at::kFloat).set_requires_grad(true);
  enum class Part { kForward, kBackward };
  Part part = Part::kForward;
  const auto step = [&] {
    part = Part::kForward;
    const at::Tensor y = at::conv2d(images, weight, {}, 1, 1).relu_().flatten(1);
    const at::Tensor loss = at::linear(y.tanh(), last).logsumexp(1).sum();
    part = Part::kBackward;
    loss.backward();
  };
  const auto drop_gradients = [&] {
    for (const at::Tensor& leaf : {weight, last}) leaf.mutable_grad().reset();
  };
  step();  // whatever libraries keep from their first run
  drop_gradients();
  const uint64_t before = live();
  reset_peak_memory();
  step();
  drop_gradients();
  ASSERT_EQ(live(), before);
  const uint64_t needed = memory_use().peak - before;
  ASSERT_GT(needed, uint64_t(kMiB));

  int forward = 0, backward = 0;
  constexpr int kBudgets = 40;
  for (int i = 0; i < kBudgets; ++i) {
    set_memory_budget(before + needed * uint64_t(i) / kBudgets);
    EXPECT_THROW(step(), OutOfMemory) << i;
    ++(part == Part::kForward ? forward : backward);
    set_memory_budget(std::nullopt);
    drop_gradients();
    EXPECT_EQ(live(), before) << "after a refusal at " << i << "/" << kBudgets;
    EXPECT_NO_THROW(at::conv2d(images.narrow(0, 0, 1), weight.detach()));
  }
  EXPECT_GT(forward, 0);
  EXPECT_GT(backward, 0) << "no budget was refused in the backward pass";
  EXPECT_NO_THROW(step());
  drop_gradients();
  EXPECT_EQ(live(), before);
}

TEST_F(MemoryBudget, CountsForManyThreadsAtOnce) {
  const uint64_t before = live();
  set_memory_budget(before + 64 * kMiB);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        try {
          const at::Tensor a = bytes((i % 40 + 1) * kMiB), b = bytes(1000 * (t + 1));
        } catch (const OutOfMemory&) {
          ++refused;
        }
        if (memory_use().live > before + 64 * kMiB) {
          // Over the budget for the moment between an allocation and its refusal: at most one block a thread.
          EXPECT_LE(memory_use().live, before + 4 * 41 * kMiB);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live(), before);
  EXPECT_LT(refused.load(), 4 * 500);
}

}  // namespace
}  // namespace skytrain::tensor
