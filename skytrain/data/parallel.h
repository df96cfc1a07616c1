// skytrain/data/parallel.h
//
// Work on many files at once.

#pragma once
#include <cstdint>
#include <functional>

namespace skytrain::data {

// Calls work(0) to work(count - 1), each once, on up to `threads` threads, of which the caller's is one (0: as many as
// there are cores, 16 at most). They begin in order. When some throw, no new ones begin, and what the lowest of them
// threw is thrown: the same failure, however many threads there are.
void for_each_parallel(uint64_t count, const std::function<void(uint64_t)>& work, int threads = 0);

}  // namespace skytrain::data
