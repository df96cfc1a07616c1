#include "skytrain/checkpoint/scatter_read.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace skytrain::checkpoint {
namespace {

// Small enough that a piece is still in the cache when it is hashed, and large enough that a few of them in flight keep
// a disk busy. On some virtual disks more bytes in flight are slower, not faster.
constexpr size_t kPiece = size_t{1} << 20;
constexpr uint64_t kThreads = 4;
constexpr size_t kSlots = 8;
constexpr uint64_t kBlock = ReadableFile::kDirectBlock;
constexpr size_t kMostReads = 16;  // of a piece in memory; where it has more parts, one read and copies are faster

// A part of a piece that goes to one place; without a place it stays in the slot's own memory.
struct Part {
  uint64_t begin = 0, end = 0;
  std::byte* at = nullptr;
  size_t size() const { return static_cast<size_t>(end - begin); }
};

class ScatterRead {
 public:
  ScatterRead(const ReadableFile& file, uint64_t begin, uint64_t end, std::span<const Stretch> stretches)
      : file_(file),
        begin_(begin),
        end_(end),
        stretches_(stretches),
        next_(begin / kPiece),
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
      Slot& slot = slots_[taken_ % kSlots];
      if (threads_.empty()) {
        fill(slot, taken_);
      } else {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return slot.ready; });
      }
      if (slot.failure) std::rethrow_exception(slot.failure);
      for (const Part& part : slot.parts) see(part.begin, {part.at, part.size()});
      const std::lock_guard lock(mutex_);
      slot.ready = false;
      ++taken_;
      free_.notify_one();
    }
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Slot {
    std::unique_ptr<std::byte, Free> memory;
    std::vector<Part> parts;
    bool ready = false;
    std::exception_ptr failure;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      free_.wait(lock, [this] { return next_ >= stop_at_ || next_ < taken_ + kSlots; });
      if (next_ >= stop_at_) return;
      const uint64_t index = next_++;
      Slot& slot = slots_[index % kSlots];
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
    if (slot.memory == nullptr) {
      slot.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kBlock, kPiece)));
      if (slot.memory == nullptr) throw std::bad_alloc();
    }
    std::byte* const own = slot.memory.get();
    divide(begin, end, slot.parts);
    if (slot.parts.size() <= kMostReads && file_.is_in_memory(begin, end - begin)) {
      for (Part& part : slot.parts) {
        if (part.at == nullptr) part.at = own + (part.begin - base);
        file_.read(part.begin, {part.at, part.size()});
      }
      return;
    }
    const auto wanted = static_cast<size_t>((end - base + kBlock - 1) / kBlock * kBlock);
    if (file_.read_direct(base, {own, wanted}) < end - base) file_.read(begin, {own, static_cast<size_t>(end - begin)});
    for (Part& part : slot.parts) {
      std::byte* const from = own + (part.begin - base);
      if (part.at != nullptr) std::memcpy(part.at, from, part.size());
      if (part.at == nullptr) part.at = from;
    }
  }

  void divide(uint64_t begin, uint64_t end, std::vector<Part>& parts) const {
    parts.clear();
    auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                                    [](uint64_t at, const Stretch& candidate) { return at < candidate.end; });
    for (uint64_t at = begin; at < end;) {
      const bool between = stretch == stretches_.end() || at < stretch->begin;
      const uint64_t limit = stretch == stretches_.end() ? end : between ? stretch->begin : stretch->end;
      Part part{.begin = at, .end = std::min(end, limit)};
      if (!between && stretch->to != nullptr) part.at = stretch->to + (at - stretch->begin);
      parts.push_back(part);
      at = part.end;
      if (!between && at == stretch->end) ++stretch;
    }
  }

  const ReadableFile& file_;
  const uint64_t begin_, end_;
  const std::span<const Stretch> stretches_;
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
