#include "skytrain/tensor/memory.h"

#include <malloc.h>

#include <climits>

namespace skytrain::tensor {

void keep_freed_memory(int threads) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // mmap'ed blocks are zeroed by the kernel at each use
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 16 << 20);
  mallopt(M_ARENA_MAX, threads + 1);
}

}  // namespace skytrain::tensor
