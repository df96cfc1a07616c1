#include "skytrain/data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "skytrain/base/machine.h"

namespace skytrain::data {

void for_each_parallel(uint64_t count, const std::function<void(uint64_t)>& work, int threads) {
  if (threads < 1) threads = std::min(available_cores(), 16);
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  uint64_t failed = count;  // the lowest that threw; those below it have begun, and end before the threads do
  std::exception_ptr failure;
  const auto run = [&] {
    while (true) {
      const uint64_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          failure = std::current_exception();
        }
        next.store(count);
      }
    }
  };
  std::vector<std::thread> others;
  const uint64_t wanted = std::min<uint64_t>(static_cast<uint64_t>(threads), count);
  for (uint64_t i = 1; i < wanted; ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace skytrain::data
