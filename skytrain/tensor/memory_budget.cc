#include "skytrain/tensor/memory_budget.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "skytrain/base/text.h"

namespace skytrain::tensor {
namespace {

constexpr int64_t kNoBudget = std::numeric_limits<int64_t>::max();

// On lines of their own: all threads write the first, all read the second.
alignas(64) std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};
alignas(64) std::atomic<int64_t> budget_bytes{kNoBudget};
c10::Allocator* wrapped = nullptr;
c10::DeleterFnPtr wrapped_delete = nullptr;
thread_local std::optional<OutOfMemory> last_out_of_memory;

[[noreturn]] void refuse(size_t asked, int64_t live, int64_t budget) {
  last_out_of_memory.emplace(asked, uint64_t(std::max<int64_t>(live, 0)),
                             budget == kNoBudget ? std::nullopt : std::optional(uint64_t(budget)));
  throw *last_out_of_memory;
}

// A block's size is asked of the heap both when it comes and when it goes, so that no header is needed and the data
// pointer stays the block itself, which LibTorch's raw_allocate and raw_deallocate rely on.
void count_and_free(void* block) {
  if (block == nullptr) return;
  live_bytes.fetch_sub(int64_t(malloc_usable_size(block)), std::memory_order_relaxed);
  wrapped_delete(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const int64_t budget = budget_bytes.load(std::memory_order_relaxed);
    if (budget != kNoBudget) {
      const int64_t live = live_bytes.load(std::memory_order_relaxed);
      if (bytes > size_t(budget) || live > budget - int64_t(bytes)) refuse(bytes, live, budget);
    }
    c10::DataPtr block;
    try {
      block = wrapped->allocate(bytes);
    } catch (const std::exception&) {  // the heap has no more
      refuse(bytes, live_bytes.load(std::memory_order_relaxed), kNoBudget);
    }
    void* const data = block.get();
    if (data == nullptr) return {nullptr, nullptr, &count_and_free, block.device()};
    const int64_t size = int64_t(malloc_usable_size(data));
    const int64_t live = live_bytes.fetch_add(size, std::memory_order_relaxed) + size;
    // Threads may pass the check above together. None of them has used its block yet, so one that went too far gives
    // up.
    if (live > budget && live - size + int64_t(bytes) > budget) {
      live_bytes.fetch_sub(size, std::memory_order_relaxed);
      refuse(bytes, live - size, budget);
    }
    int64_t peak = peak_bytes.load(std::memory_order_relaxed);
    while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
    const c10::Device device = block.device();
    block.release_context();
    return {data, data, &count_and_free, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &count_and_free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

std::string describe(uint64_t asked, uint64_t live, std::optional<uint64_t> budget) {
  const std::string taken = str("out of memory: ", human_bytes(double(asked)), " more, beside the ",
                                human_bytes(double(live)), " that tensors hold, ");
  return taken + (budget ? str("would exceed the budget of ", human_bytes(double(*budget)))
                         : std::string("is more than the machine has"));
}

}  // namespace

OutOfMemory::OutOfMemory(uint64_t asked, uint64_t live, std::optional<uint64_t> budget)
    : asked_(asked), live_(live), budget_(budget), message_(describe(asked, live, budget)) {}

void install_memory_budget() {
  if (wrapped != nullptr) return;
  wrapped = c10::GetCPUAllocator();
  wrapped_delete = wrapped->raw_deleter();
  TORCH_INTERNAL_ASSERT(wrapped_delete != nullptr);
  static auto* const allocator = new CountingAllocator;  // never deleted: it must outlive every tensor
  c10::SetCPUAllocator(allocator, /*priority=*/255);
}

MemoryUse memory_use() {
  // Blocks that were allocated before the count began may be freed within it, by raw_deallocate.
  const auto read = [](const std::atomic<int64_t>& bytes) {
    return uint64_t(std::max<int64_t>(bytes.load(std::memory_order_relaxed), 0));
  };
  const uint64_t live = read(live_bytes);
  return {live, std::max(live, read(peak_bytes))};
}

void reset_peak_memory() { peak_bytes.store(live_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed); }

void set_memory_budget(std::optional<uint64_t> bytes) {
  budget_bytes.store(bytes ? int64_t(std::min(*bytes, uint64_t(kNoBudget) - 1)) : kNoBudget, std::memory_order_relaxed);
}

std::optional<OutOfMemory> take_last_out_of_memory() {
  std::optional<OutOfMemory> last;
  last.swap(last_out_of_memory);
  return last;
}

}  // namespace skytrain::tensor
