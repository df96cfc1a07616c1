// skytrain/weights/unpickler.h
//
// Reads one pickle (protocols 2 to 5, the opcodes that torch.save's files use) into PickleValues. Nothing of it is run:
// what REDUCE, NEWOBJ and BUILD do to the few names of pickle_globals.h is written out in unpickler_calls.cc; any other
// name is refused. Opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py
//
// It does not recurse. Time is linear in the pickle, memory at most kPickleMemoryFactor times what was read of it.

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/weights/pickle_values.h"
#include "skytrain/weights/refusal.h"

namespace skytrain::weights {

inline constexpr uint64_t kPickleMemoryFactor = 16, kPickleMemoryFloor = 64 * 1024;
inline constexpr uint64_t kPickleMaxBytes = uint64_t{256} << 20;  // a million tensors take about 200 MB
inline constexpr size_t kPickleMaxDepth = 1000;  // of open marks; Python's own pickler gives up earlier
inline constexpr size_t kPickleMaxStack = 1 << 20;

class Unpickler {
 public:
  // The pickle begins at `begin` of `file` (the whole file, so that places in messages are places in it) and ends
  // before `end`. All must outlive this and the values.
  Unpickler(std::span<const std::byte> file, uint64_t begin, uint64_t end, PickleValues& values, const Refusal& refuse);

  // Runs to the pickle's STOP and returns its value. Throws Error(kData).
  PickleRef run();
  uint64_t end() const { return at_; }  // the byte of the file after the STOP

 private:
  [[noreturn]] void fail(const std::string& what) const;  // "… at byte N"
  [[noreturn]] void refuse_global(std::string_view module, std::string_view name) const;

  // Reading.
  std::span<const std::byte> take(uint64_t count);
  template <class Unsigned>
  Unsigned number();
  std::string_view line();

  // The stack, down to the last mark.
  void push(PickleRef ref);
  PickleRef pop();
  PickleRef& top();
  void mark();
  size_t pop_mark();  // where the values above the mark begin; the caller cuts the stack there
  PickleRef pop_tuple(size_t begin);

  void put(uint64_t index);
  void get(uint64_t index);
  void append_from(size_t begin, PickleKind kind);
  void push_text(PickleKind kind, uint64_t size);
  void push_integer(int64_t value);
  void push_long(uint64_t size);
  void push_global(std::string_view module, std::string_view name);
  PickleRef container(PickleKind kind, bool flag = false);
  void append(PickleRef to, PickleRef value);
  void charge(uint64_t bytes);
  bool step(uint8_t opcode);  // false: STOP

  // unpickler_calls.cc
  PickleRef reduce(PickleRef callable, PickleRef arguments);
  PickleRef new_object(PickleRef type, PickleRef arguments);
  void build(PickleRef object, PickleRef state);
  PickleRef persistent(PickleRef id);
  PickleRef ordered_dict(PickleRef arguments);
  PickleRef tensor(PickleRef arguments, PickleGlobal::Role role);

  std::span<const std::byte> file_;
  const uint64_t begin_, limit_;
  PickleValues& values_;
  const Refusal& refuse_;
  uint64_t at_, opcode_at_ = 0;
  uint64_t charged_ = 0;
  size_t stack_peak_ = 0;
  std::vector<PickleRef> stack_, memo_;
  std::vector<size_t> marks_;
  size_t memoized_ = 0;
};

}  // namespace skytrain::weights
