#include "skytrain/checkpoint/scatter_read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "skytrain/base/error.h"

namespace skytrain::checkpoint {
namespace {

// Bytes in memory. Those before `in_memory` need no disk; fails at the given read, counted from 0.
class FakeFile final : public ReadableFile {
 public:
  explicit FakeFile(size_t size, uint64_t in_memory = 0) : in_memory_(in_memory), bytes_(size) {
    uint32_t value = 1;
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24);
  }

  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, std::span<std::byte> out) const override {
    count(out.size());
    if (offset + out.size() > bytes_.size()) throw Error(ErrorKind::kData, "fake", "is short");
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  size_t read_direct(uint64_t offset, std::span<std::byte> out) const override {
    EXPECT_EQ(offset % kDirectBlock, 0u);
    EXPECT_EQ(out.size() % kDirectBlock, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(out.data()) % kDirectBlock, 0u);
    const size_t there = std::min(out.size(), bytes_.size() - std::min<size_t>(offset, bytes_.size()));
    count(there);
    std::memcpy(out.data(), bytes_.data() + offset, there);
    return there;
  }
  bool is_in_memory(uint64_t offset, uint64_t bytes) const override { return offset + bytes <= in_memory_; }
  std::span<const std::byte> map() const override { return bytes_; }

  void fail_at(int read) { fail_at_ = read; }
  void shorten(size_t bytes) { bytes_.resize(bytes); }
  int reads() const { return reads_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  void count(size_t bytes) const {
    if (reads_++ == fail_at_) throw errno_error("fake", "cannot read", EIO);
    bytes_read_ += bytes;
  }

  const uint64_t in_memory_;
  std::vector<std::byte> bytes_;
  int fail_at_ = -1;
  mutable std::atomic<int> reads_ = 0;
  mutable std::atomic<uint64_t> bytes_read_ = 0;
};

constexpr size_t kMiB = size_t{1} << 20;

// Destinations for stretches of a file, with guards between them.
struct Places {
  std::vector<std::vector<std::byte>> memory;
  std::vector<Stretch> stretches;

  Places(std::initializer_list<std::pair<uint64_t, uint64_t>> ranges) {
    for (const auto& [begin, end] : ranges) add(begin, end);
  }
  void add(uint64_t begin, uint64_t end) {
    memory.emplace_back(end - begin + 2, std::byte{0x5a});
    stretches.push_back({begin, end, memory.back().data() + 1});
  }
  bool hold(const FakeFile& file) const {
    for (size_t i = 0; i < memory.size(); ++i) {
      const Stretch& stretch = stretches[i];
      if (memory[i].front() != std::byte{0x5a} || memory[i].back() != std::byte{0x5a}) return false;
      if (std::memcmp(stretch.to, file.map().data() + stretch.begin, stretch.end - stretch.begin) != 0) return false;
    }
    return true;
  }
};

// Every byte of [begin, end) was seen once and in order, and is that of the file.
void expect_read(const FakeFile& file, uint64_t begin, uint64_t end, const Places& places) {
  uint64_t at = begin;
  scatter_read(file, begin, end, places.stretches, [&](uint64_t offset, std::span<const std::byte> bytes) {
    ASSERT_EQ(offset, at);
    ASSERT_EQ(std::memcmp(bytes.data(), file.map().data() + offset, bytes.size()), 0) << offset;
    at += bytes.size();
  });
  EXPECT_EQ(at, end);
  EXPECT_TRUE(places.hold(file));
}

TEST(ScatterRead, PutsAndShowsEveryByteOnce) {
  const size_t size = 11 * kMiB + 77;
  for (const uint64_t in_memory : {uint64_t{0}, uint64_t{5 * kMiB}, uint64_t{size}}) {
    const FakeFile file(size, in_memory);
    expect_read(file, 0, size, {{0, size}});
    EXPECT_EQ(file.bytes_read(), size);
    expect_read(file, 4097, size, {{5000, 5001}, {5001, 3 * kMiB + 5}, {4 * kMiB, 7 * kMiB}, {size - 1, size}});
    expect_read(file, 100, 5 * kMiB, {});
    expect_read(file, 100, 101, {{100, 101}});
    expect_read(file, 7, 7, {});
  }
}

TEST(ScatterRead, ManySmallStretchesAreReadInOne) {
  const FakeFile file(8 * kMiB, 8 * kMiB);
  Places places{};
  for (uint64_t at = 1; at + 10 < 8 * kMiB; at += 4000) places.add(at, at + 10);
  expect_read(file, 0, 8 * kMiB, places);
  EXPECT_EQ(file.reads(), 4) << "pieces of 2 MiB";
}

TEST(ScatterRead, AFailureOfAnyReadIsThrown) {
  for (int fail_at = 0; fail_at < 12; ++fail_at) {
    FakeFile file(24 * kMiB, 12 * kMiB);
    file.fail_at(fail_at);
    Places places{{0, 24 * kMiB}};
    EXPECT_THROW(scatter_read(file, 0, 24 * kMiB, places.stretches, [](uint64_t, std::span<const std::byte>) {}), Error)
        << fail_at;
  }
}

TEST(ScatterRead, AFileThatBecameShorterIsAnError) {
  FakeFile file(6 * kMiB);
  file.shorten(4 * kMiB + 123);
  Places places{{0, 6 * kMiB}};
  EXPECT_THROW(scatter_read(file, 0, 6 * kMiB, places.stretches, [](uint64_t, std::span<const std::byte>) {}), Error);
}

TEST(ScatterRead, EndsWhenNobodyWantsToSeeMore) {
  struct Enough {};
  const FakeFile file(40 * kMiB);
  EXPECT_THROW(scatter_read(file, 0, 40 * kMiB, {},
                            [](uint64_t offset, std::span<const std::byte>) {
                              if (offset >= 2 * kMiB) throw Enough();
                            }),
               Enough);
  EXPECT_LE(file.reads(), 10) << "a few pieces are read ahead";
}

}  // namespace
}  // namespace skytrain::checkpoint
