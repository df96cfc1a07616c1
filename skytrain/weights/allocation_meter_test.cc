#include "skytrain/weights/allocation_meter.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace {

ptrdiff_t live = 0, peak = 0, base = 0;

void* taken(void* memory) {
  if (memory != nullptr) {
    live += static_cast<ptrdiff_t>(malloc_usable_size(memory));
    peak = std::max(peak, live);
  }
  return memory;
}

void* take(size_t size) {
  void* const memory = taken(std::malloc(size));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give(void* memory) {
  if (memory == nullptr) return;
  live -= static_cast<ptrdiff_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* take_aligned(size_t size, std::align_val_t alignment) {
  const auto boundary = static_cast<size_t>(alignment);
  return taken(std::aligned_alloc(boundary, (std::max<size_t>(size, 1) + boundary - 1) / boundary * boundary));
}

}  // namespace

void* operator new(size_t size) { return take(size); }
void* operator new[](size_t size) { return take(size); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_aligned(size, alignment);
}
void operator delete(void* memory) noexcept { give(memory); }
void operator delete[](void* memory) noexcept { give(memory); }
void operator delete(void* memory, size_t) noexcept { give(memory); }
void operator delete[](void* memory, size_t) noexcept { give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give(memory); }

namespace skytrain::weights {

AllocationMeter::AllocationMeter() { peak = base = live; }
size_t AllocationMeter::peak_bytes() const { return static_cast<size_t>(peak - base); }

namespace {

TEST(AllocationMeter, SeesWhatWasTakenAtOnce) {
  const AllocationMeter meter;
  { const auto block = std::make_unique<char[]>(100'000); }
  { const auto block = std::make_unique<char[]>(50'000); }
  EXPECT_GE(meter.peak_bytes(), 100'000u);
  EXPECT_LT(meter.peak_bytes(), 110'000u);
}

}  // namespace
}  // namespace skytrain::weights
