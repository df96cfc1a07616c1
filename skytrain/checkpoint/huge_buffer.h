// skytrain/checkpoint/huge_buffer.h
//
// Memory for reads and writes past the page cache. In huge pages where the kernel gives them: some disks move those
// twice as fast as small ones, since requests are not cut to pieces.

#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace skytrain::checkpoint {

class HugeBuffer {
 public:
  // bytes: rounded up to a multiple of 2 MiB; pages that are not used take no memory. Throws std::bad_alloc.
  explicit HugeBuffer(size_t bytes) {
    const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, rounded)));
    if (memory_ == nullptr) throw std::bad_alloc();
    ::madvise(memory_.get(), rounded, MADV_HUGEPAGE);
  }
  std::byte* data() const { return memory_.get(); }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace skytrain::checkpoint
