#include "skytrain/checkpoint/scatter_read.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "skytrain/checkpoint/huge_buffer.h"

namespace skytrain::checkpoint {
namespace {

// Measured on a virtual disk of 3.7 GB/s and two cores: fewer bytes in flight leave the disk idle, more are slower.
constexpr size_t kPiece = size_t{2} << 20;
constexpr uint64_t kThreads = 3;
constexpr size_t kSlots = 6;
constexpr size_t kChunk = size_t{128} << 10;
constexpr uint64_t kBlock = ReadableFile::kDirectBlock;
constexpr size_t kMostReads = 16;  // of a piece in memory; where it has more parts, one read and copies are faster

// A part of a piece that goes to one place, or nowhere.
struct Part {
  uint64_t begin = 0, end = 0;
  std::byte* at = nullptr;  // where it was read to
  std::byte* to = nullptr;  // where it is still to be copied to; null: it is there, or goes nowhere
  size_t size() const { return static_cast<size_t>(end - begin); }
};

class ScatterRead {
 public:
  ScatterRead(const ReadableFile& file, uint64_t begin, uint64_t end, std::span<const Stretch> stretches)
      : file_(file),
        begin_(begin),
        end_(end),
        stretches_(stretches),
        first_(begin / kPiece),
        next_(first_),
        taken_(next_),
        stop_at_((end + kPiece - 1) / kPiece) {
    const uint64_t pieces = stop_at_ - next_;
    if (pieces < 2) return;  // not worth a thread
    try {
      for (uint64_t i = 0; i < std::min(kThreads, pieces); ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // then with fewer of them, or none
    }
  }

  ~ScatterRead() {
    {
      const std::lock_guard lock(mutex_);
      stop_at_ = next_;
    }
    free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  ScatterRead(const ScatterRead&) = delete;
  ScatterRead& operator=(const ScatterRead&) = delete;

  void run(const std::function<void(uint64_t, std::span<const std::byte>)>& see) {
    for (const uint64_t all = stop_at_; taken_ < all;) {
      Slot& slot = slot_of(taken_);
      if (threads_.empty()) {
        fill(slot, taken_);
      } else {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return slot.ready; });
      }
      if (slot.failure) std::rethrow_exception(slot.failure);
      for (const Part& part : slot.parts) {
        if (part.to == nullptr) {
          see(part.begin, {part.at, part.size()});
          continue;
        }
        // Copied here, so that the threads keep the disk busy, in chunks that are still in the cache when they are
        // seen.
        for (size_t at = 0; at < part.size(); at += kChunk) {
          const size_t size = std::min(kChunk, part.size() - at);
          std::memcpy(part.to + at, part.at + at, size);
          see(part.begin + at, {part.to + at, size});
        }
      }
      const std::lock_guard lock(mutex_);
      slot.ready = false;
      ++taken_;
      free_.notify_one();
    }
  }

 private:
  struct Slot {
    std::vector<Part> parts;
    bool ready = false;
    std::exception_ptr failure;
  };

  Slot& slot_of(uint64_t index) { return slots_[(index - first_) % kSlots]; }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      free_.wait(lock, [this] { return next_ >= stop_at_ || next_ < taken_ + kSlots; });
      if (next_ >= stop_at_) return;
      const uint64_t index = next_++;
      Slot& slot = slot_of(index);
      lock.unlock();
      try {
        fill(slot, index);
      } catch (...) {
        slot.failure = std::current_exception();
      }
      lock.lock();
      slot.ready = true;
      ready_.notify_one();
    }
  }

  void fill(Slot& slot, uint64_t index) {
    const uint64_t begin = std::max(begin_, index * kPiece), end = std::min(end_, (index + 1) * kPiece);
    const uint64_t base = begin / kBlock * kBlock;
    std::byte* const own = memory_.data() + static_cast<size_t>(&slot - slots_.data()) * kPiece;
    divide(begin, end, slot.parts);
    if (slot.parts.size() <= kMostReads && file_.is_in_memory(begin, end - begin)) {
      for (Part& part : slot.parts) {
        part.at = part.to != nullptr ? std::exchange(part.to, nullptr) : own + (part.begin - base);
        file_.read(part.begin, {part.at, part.size()});
      }
      return;
    }
    const auto wanted = static_cast<size_t>((end - base + kBlock - 1) / kBlock * kBlock);
    if (file_.read_direct(base, {own, wanted}) < end - base) file_.read(begin, {own, static_cast<size_t>(end - begin)});
    for (Part& part : slot.parts) part.at = own + (part.begin - base);
  }

  void divide(uint64_t begin, uint64_t end, std::vector<Part>& parts) const {
    parts.clear();
    auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                                    [](uint64_t at, const Stretch& candidate) { return at < candidate.end; });
    for (uint64_t at = begin; at < end;) {
      const bool between = stretch == stretches_.end() || at < stretch->begin;
      const uint64_t limit = stretch == stretches_.end() ? end : between ? stretch->begin : stretch->end;
      Part part{.begin = at, .end = std::min(end, limit)};
      if (!between && stretch->to != nullptr) part.to = stretch->to + (at - stretch->begin);
      parts.push_back(part);
      at = part.end;
      if (!between && at == stretch->end) ++stretch;
    }
  }

  const ReadableFile& file_;
  const uint64_t begin_, end_;
  const std::span<const Stretch> stretches_;
  const uint64_t first_;                      // piece
  const HugeBuffer memory_{kSlots * kPiece};  // of the slots
  std::mutex mutex_;
  std::condition_variable ready_, free_;
  uint64_t next_, taken_, stop_at_;  // pieces: the next to be read, the next to be seen, the first that is not wanted
  std::array<Slot, kSlots> slots_;
  std::vector<std::thread> threads_;
};

}  // namespace

void scatter_read(const ReadableFile& file, uint64_t begin, uint64_t end, std::span<const Stretch> stretches,
                  const std::function<void(uint64_t, std::span<const std::byte>)>& see) {
  if (begin < end) ScatterRead(file, begin, end, stretches).run(see);
}

}  // namespace skytrain::checkpoint
