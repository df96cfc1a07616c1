// skytrain/tensor/memory.h
//
// How the worker's heap behaves.

#pragma once

namespace skytrain::tensor {

// Makes malloc keep freed activations instead of giving their pages back to the kernel, so that a training step takes
// no page faults once its first one has run. Call once, first thing in main(), before threads start; affects the whole
// process. threads: that will allocate tensors (replicas), which bounds the number of heaps.
void keep_freed_memory(int threads);

}  // namespace skytrain::tensor
