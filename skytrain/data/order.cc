#include "skytrain/data/order.h"

#include "skytrain/base/error.h"
#include "skytrain/data/mix.h"

namespace skytrain::data {

Order::Order(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size), half_bits_(1) {
  if (size == 0) throw Error(ErrorKind::kInternal, "", "the order of an empty data set was asked for");
  while (half_bits_ < 32 && ((size - 1) >> (2 * half_bits_)) != 0) ++half_bits_;
  const uint64_t key = make_key(Stream::kOrder, seed, epoch);
  for (int round = 0; round < kRounds; ++round) keys_[round] = random_bits(key, static_cast<uint64_t>(round));
}

uint64_t Order::operator[](uint64_t position) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  const uint32_t shift = 64 - half_bits_;
  uint64_t value = position;
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (const uint64_t key : keys_) {
      // The product's high bits are the well-mixed ones.
      const uint64_t next = left ^ (mix64(right + key) >> shift);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= size_);  // outside: walk on along the cycle, which leads back in because it starts in
  return value;
}

}  // namespace skytrain::data
