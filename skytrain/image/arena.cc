#include "skytrain/image/arena.h"

#include <algorithm>
#include <new>
#include <utility>

namespace skytrain::image {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestBlock = size_t{64} << 10;

size_t round_up(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

bool Arena::add_block(size_t size) noexcept {
  try {
    blocks_.reserve(blocks_.size() + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[size]);
  if (!bytes) return false;
  const size_t misaligned = reinterpret_cast<uintptr_t>(bytes.get()) % kAlignment;
  used_ = misaligned == 0 ? 0 : kAlignment - misaligned;
  blocks_.push_back({std::move(bytes), size});
  capacity_ += size;
  return true;
}

void* Arena::allocate(size_t size) noexcept {
  if (size > SIZE_MAX / 2) return nullptr;
  size = round_up(std::max<size_t>(size, 1));
  if (blocks_.empty() || size > blocks_.back().size - used_) {
    if (!add_block(std::max({size + kAlignment, kSmallestBlock, capacity_ / 2}))) return nullptr;
  }
  void* const piece = blocks_.back().bytes.get() + used_;
  used_ += size;
  return piece;
}

void Arena::reset(size_t keep) noexcept {
  const size_t total = capacity_;
  if (blocks_.size() > 1 || total > keep) {
    blocks_.clear();
    capacity_ = 0;
    used_ = 0;
    if (total <= keep) add_block(total);
    return;
  }
  if (blocks_.empty()) return;
  const size_t misaligned = reinterpret_cast<uintptr_t>(blocks_.back().bytes.get()) % kAlignment;
  used_ = misaligned == 0 ? 0 : kAlignment - misaligned;
}

}  // namespace skytrain::image
