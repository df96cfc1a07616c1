// skytrain/checkpoint/scatter_read.h
//
// One pass over a large file at the speed of the disk: threads read pieces ahead, from the page cache straight to where
// they belong, else past it, while the calling thread copies what was read so and sees all bytes in order. Memory
// beside the destinations: 12 MiB.

#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "skytrain/base/readable_file.h"

namespace skytrain::checkpoint {

// Where the bytes [begin, end) of a file go.
struct Stretch {
  uint64_t begin = 0, end = 0;
  std::byte* to = nullptr;
};

// Reads the bytes [begin, end) of `file`. Those of a stretch go to its memory, the others nowhere; `see` is called in
// the calling thread for all of them in order, when they are there. `bytes` is valid during the call.
// Throws what reading throws and what `see` throws; then the memory of the stretches holds anything.
// REQUIRES: `stretches` lie in order, without an overlap, and none is empty.
void scatter_read(const ReadableFile& file, uint64_t begin, uint64_t end, std::span<const Stretch> stretches,
                  const std::function<void(uint64_t offset, std::span<const std::byte> bytes)>& see);

}  // namespace skytrain::checkpoint
