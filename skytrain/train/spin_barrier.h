// skytrain/train/spin_barrier.h
//
// A barrier for a few threads that meet every few hundred microseconds: waits by spinning, and sleeps only when the
// others are long in coming (they evaluate, or write a checkpoint).

#pragma once
#include <atomic>
#include <cstdint>

namespace skytrain::train {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}

  // All of `threads` threads return once all have called. What each wrote before is visible to all after.
  void arrive_and_wait() {
    const uint32_t mine = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(mine + 1, std::memory_order_release);
      generation_.notify_all();
      return;
    }
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation_.load(std::memory_order_acquire) != mine) return;
      pause();
    }
    while (generation_.load(std::memory_order_acquire) == mine) generation_.wait(mine, std::memory_order_acquire);
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static constexpr int kSpins = 20000;  // some 300 us
  const int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> generation_{0};
};

}  // namespace skytrain::train
