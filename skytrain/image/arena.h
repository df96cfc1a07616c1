// skytrain/image/arena.h
//
// Memory for libraries that allocate many pieces for each picture and free them all at its end. It is kept from one
// picture to the next, so that nothing is allocated once it has grown to the largest. Not thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace skytrain::image {

class Arena {
 public:
  // Uninitialised, aligned to 64 bytes, valid until reset(). nullptr: there is not enough memory.
  void* allocate(size_t size) noexcept;
  // All pieces are free. Several blocks become one, unless together they exceed `keep` bytes: then none is kept.
  void reset(size_t keep) noexcept;
  size_t capacity() const { return capacity_; }

 private:
  struct Block {
    std::unique_ptr<uint8_t[]> bytes;
    size_t size = 0;
  };

  bool add_block(size_t size) noexcept;

  std::vector<Block> blocks_;  // pieces come from the last
  size_t used_ = 0;            // of the last block
  size_t capacity_ = 0;        // of all
};

}  // namespace skytrain::image
