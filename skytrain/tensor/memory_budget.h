// skytrain/tensor/memory_budget.h
//
// What tensors take of this process's memory, and a limit to it.
//
// A wrapper around LibTorch's CPU allocator counts what tensors hold (as the heap rounds it, without the heap's own
// books and without what libraries allocate for themselves), and refuses what would exceed a budget by an exception, as
// a GPU does, where the kernel would kill the process. Not installed, nothing is counted and nothing costs anything.
// Counting costs one relaxed addition for each allocation and one for each release.

#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace skytrain::tensor {

// An allocation was refused: by the budget, or by the machine (no budget then). Nothing of it was allocated; what was
// allocated before is freed as usual while the exception travels, so that a smaller operation can be tried next.
class OutOfMemory : public std::exception {
 public:
  OutOfMemory(uint64_t asked, uint64_t live, std::optional<uint64_t> budget);
  const char* what() const noexcept override { return message_.c_str(); }
  uint64_t asked() const { return asked_; }  // bytes
  uint64_t live() const { return live_; }    // bytes that tensors held at that moment
  std::optional<uint64_t> budget() const { return budget_; }

 private:
  uint64_t asked_, live_;
  std::optional<uint64_t> budget_;
  std::string message_;
};

// Bytes. All 0 while counting is not installed.
struct MemoryUse {
  uint64_t live = 0;
  uint64_t peak = 0;  // the most that was live since the start or the last reset_peak_memory()
};

// Starts counting, for the rest of the process. Call before other threads use tensors; a second call does nothing.
// Tensors that were allocated before are not counted, and don't disturb the count when they go.
void install_memory_budget();

// The rest may be called by any thread at any time.
MemoryUse memory_use();
void reset_peak_memory();
// nullopt (as at the start): no limit. Has no effect while counting is not installed.
void set_memory_budget(std::optional<uint64_t> bytes);

// The last OutOfMemory of this thread, once: for callers of code that turns exceptions into others (the interpreter of
// TorchScript makes a std::runtime_error of any).
std::optional<OutOfMemory> take_last_out_of_memory();

}  // namespace skytrain::tensor
