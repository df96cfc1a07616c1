#include "skytrain/weights/unpickler.h"

#include <algorithm>
#include <cstdio>

#include "skytrain/weights/little_endian.h"
#include "skytrain/weights/pickle_opcodes.h"

namespace skytrain::weights {
namespace {

constexpr PickleRef kNoRef = ~PickleRef{0};
constexpr size_t kMaxGlobalName = 512;
constexpr uint64_t kGrowth = 3;  // a vector that grows is there one and a half times, at up to twice its size

}  // namespace

Unpickler::Unpickler(std::span<const std::byte> file, uint64_t begin, uint64_t end, PickleValues& values,
                     const Refusal& refuse)
    : file_(file),
      begin_(begin),
      limit_(std::min(end, begin + std::min(kPickleMaxBytes, end - begin))),
      values_(values),
      refuse_(refuse),
      at_(begin) {}

void Unpickler::fail(const std::string& what) const {
  refuse_(str("has a damaged pickle: ", what, " at byte ", opcode_at_));
}

void Unpickler::refuse_global(std::string_view module, std::string_view name) const {
  const std::string full = printable(str(module, ".", name));
  // Every module of PyTorch carries these two in its state.
  const std::string_view rest = as_text(file_.subspan(begin_, limit_ - begin_));
  if (rest.find("_parameters") != rest.npos && rest.find("_modules") != rest.npos) {
    refuse_(str("holds a whole module (it refers to ", full, "), which can only be read by running its code: refused"),
            "in Python, save the weights alone: torch.save(model.state_dict(), FILE)");
  }
  refuse_(str("refers to ", full, ", which a weights file has no use for: refused"),
          "save the weights alone: torch.save(model.state_dict(), FILE)");
}

void Unpickler::charge(uint64_t bytes) {
  charged_ += bytes;
  if (charged_ > kPickleMemoryFloor + kPickleMemoryFactor * (at_ - begin_)) {
    fail(
        str("it takes more than ", kPickleMemoryFactor, " times its own size in memory, which torch.save's never do,"));
  }
}

// Reading.

std::span<const std::byte> Unpickler::take(uint64_t count) {
  if (count > limit_ - at_) {
    if (limit_ - begin_ == kPickleMaxBytes)
      refuse_(str("has a pickle beyond the limit of ", kPickleMaxBytes, " bytes"));
    refuse_(str("ends in the middle of its pickle: byte ", opcode_at_, " wants ", count, " bytes more, ", limit_ - at_,
                " are left"),
            kFetchAgain);
  }
  const auto bytes = file_.subspan(at_, count);
  at_ += count;
  return bytes;
}

template <class Unsigned>
Unsigned Unpickler::number() {
  return load_le<Unsigned>(take(sizeof(Unsigned)).data());
}

std::string_view Unpickler::line() {
  const std::string_view rest = as_text(file_.subspan(at_, std::min<uint64_t>(limit_ - at_, kMaxGlobalName)));
  const size_t length = rest.find('\n');
  if (length == rest.npos) fail("a name without an end");
  at_ += length + 1;
  return rest.substr(0, length);
}

// The stack.

void Unpickler::push(PickleRef ref) {
  stack_.push_back(ref);
  if (stack_.size() <= stack_peak_) return;
  stack_peak_ = stack_.size();
  charge(kGrowth * sizeof(PickleRef));
  if (stack_peak_ > kPickleMaxStack) fail(str("more than ", kPickleMaxStack, " values wait on the stack"));
}

PickleRef& Unpickler::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  return stack_.back();
}

PickleRef Unpickler::pop() {
  const PickleRef ref = top();
  stack_.pop_back();
  return ref;
}

void Unpickler::mark() {
  if (marks_.size() == kPickleMaxDepth) fail(str("it nests deeper than ", kPickleMaxDepth, " levels"));
  marks_.push_back(stack_.size());
}

size_t Unpickler::pop_mark() {
  if (marks_.empty()) fail("there is no mark");
  const size_t begin = marks_.back();
  marks_.pop_back();
  return begin;
}

// Containers and the memo.

PickleRef Unpickler::container(PickleKind kind, bool flag) {
  charge(PickleValues::kNodeBytes);
  return values_.add_container(kind, flag);
}

void Unpickler::append(PickleRef to, PickleRef value) {
  charge(PickleValues::kCellBytes);
  values_.append(to, value);
}

PickleRef Unpickler::pop_tuple(size_t begin) {
  PickleRef tuple = PickleValues::kEmptyTuple;
  if (begin < stack_.size()) {
    tuple = container(PickleKind::kTuple);
    for (size_t i = begin; i < stack_.size(); ++i) append(tuple, stack_[i]);
  }
  stack_.resize(begin);
  return tuple;
}

void Unpickler::append_from(size_t begin, PickleKind kind) {
  if (kind == PickleKind::kDict && (stack_.size() - begin) % 2 != 0) fail("a key without a value");
  if (begin <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  const PickleRef to = stack_[begin - 1];
  if (!values_.is(to, kind)) fail(str(kind_words(values_.kind(to)), " is filled as if it were ", kind_words(kind)));
  for (size_t i = begin; i < stack_.size(); ++i) append(to, stack_[i]);
  stack_.resize(begin);
}

void Unpickler::put(uint64_t index) {
  const PickleRef value = top();
  // Picklers count 0, 1, 2 …, so an index beyond the bytes that were read is a lie.
  if (index > at_ - begin_) fail(str("a memo number of ", index));
  if (index >= memo_.size()) {
    charge((index + 1 - memo_.size()) * kGrowth * sizeof(PickleRef));
    memo_.resize(index + 1, kNoRef);
  }
  memoized_ += memo_[index] == kNoRef;
  memo_[index] = value;
}

void Unpickler::get(uint64_t index) {
  if (index >= memo_.size() || memo_[index] == kNoRef) fail(str("nothing is memoized as ", index));
  push(memo_[index]);
}

// Values.

void Unpickler::push_text(PickleKind kind, uint64_t size) {
  const std::string_view text = as_text(take(size));
  if (size > UINT32_MAX) fail(str("a string of ", size, " bytes"));
  charge(PickleValues::kNodeBytes);
  push(values_.add_text(kind, text));
}

void Unpickler::push_integer(int64_t value) {
  if (value < 0 || value >= PickleValues::kSmallIntEnd) charge(PickleValues::kNodeBytes);
  push(values_.add_integer(value));
}

void Unpickler::push_long(uint64_t size) {
  if (size > sizeof(int64_t)) return push_text(PickleKind::kLong, size);
  const auto bytes = take(size);
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  const bool negative = size > 0 && (static_cast<uint8_t>(bytes[size - 1]) & 0x80) != 0;
  if (negative && size < sizeof(int64_t)) value |= ~uint64_t{0} << (8 * size);
  push_integer(static_cast<int64_t>(value));
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  const PickleGlobal* const global = find_pickle_global(module, name);
  if (global == nullptr) refuse_global(module, name);
  if (global->role == PickleGlobal::Role::kUnsupported) {
    refuse_(str("holds ", global->words, " (", module, ".", name, "), which is not read"),
            "in Python, save plain dense tensors: tensor.dequantize(), .to_dense(), .contiguous()");
  }
  charge(PickleValues::kNodeBytes);
  push(values_.add_global(*global));
}

// The machine.

bool Unpickler::step(uint8_t opcode) {
  switch (opcode) {
    case op::kProto:
      if (const uint8_t protocol = number<uint8_t>(); protocol < 2 || protocol > 5) {
        fail(str("protocol ", int{protocol}, " (2 to 5 are known)"));
      }
      break;
    case op::kFrame:  // a hint for readers of streams
      if (const auto size = number<uint64_t>(); size > limit_ - at_) {
        refuse_(str("ends in the middle of its pickle: a frame of ", size, " bytes at byte ", opcode_at_, ", ",
                    limit_ - at_, " are left"),
                kFetchAgain);
      }
      break;
    case op::kStop:
      return false;
    case op::kMark:
      mark();
      break;
    case op::kPop:
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      break;
    case op::kPopMark:
      stack_.resize(pop_mark());
      break;
    case op::kDup:
      push(top());
      break;
    case op::kNone:
      push(PickleValues::kNone);
      break;
    case op::kNewTrue:
      push(PickleValues::kTrue);
      break;
    case op::kNewFalse:
      push(PickleValues::kFalse);
      break;
    case op::kBinInt:
      push_integer(static_cast<int32_t>(number<uint32_t>()));
      break;
    case op::kBinInt1:
      push_integer(number<uint8_t>());
      break;
    case op::kBinInt2:
      push_integer(number<uint16_t>());
      break;
    case op::kLong1:
      push_long(number<uint8_t>());
      break;
    case op::kLong4:
      if (const auto size = static_cast<int32_t>(number<uint32_t>()); size < 0) {
        fail(str("a number of ", size, " bytes"));
      } else {
        push_long(static_cast<uint64_t>(size));
      }
      break;
    case op::kBinFloat:
      take(8);
      push(PickleValues::kFloat);
      break;
    case op::kShortBinString:
    case op::kShortBinUnicode:
      push_text(PickleKind::kString, number<uint8_t>());
      break;
    case op::kBinString:  // its length is signed; a negative one is too large as unsigned
    case op::kBinUnicode:
      push_text(PickleKind::kString, number<uint32_t>());
      break;
    case op::kBinUnicode8:
      push_text(PickleKind::kString, number<uint64_t>());
      break;
    case op::kShortBinBytes:
      push_text(PickleKind::kBytes, number<uint8_t>());
      break;
    case op::kBinBytes:
      push_text(PickleKind::kBytes, number<uint32_t>());
      break;
    case op::kBinBytes8:
    case op::kByteArray8:
      push_text(PickleKind::kBytes, number<uint64_t>());
      break;
    case op::kEmptyTuple:
      push(PickleValues::kEmptyTuple);
      break;
    case op::kTuple:
      push(pop_tuple(pop_mark()));
      break;
    case op::kTuple1:
    case op::kTuple2:
    case op::kTuple3: {
      const size_t count = size_t{opcode} - op::kTuple1 + 1;
      if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) fail("the stack is empty");
      push(pop_tuple(stack_.size() - count));
      break;
    }
    case op::kEmptyList:
      push(container(PickleKind::kList));
      break;
    case op::kEmptyDict:
      push(container(PickleKind::kDict));
      break;
    case op::kList:
    case op::kDict: {
      const PickleKind kind = opcode == op::kList ? PickleKind::kList : PickleKind::kDict;
      const size_t begin = pop_mark();
      stack_.insert(stack_.begin() + static_cast<ptrdiff_t>(begin), container(kind));
      append_from(begin + 1, kind);
      break;
    }
    case op::kAppend:
      top();
      append_from(stack_.size() - 1, PickleKind::kList);
      break;
    case op::kAppends:
      append_from(pop_mark(), PickleKind::kList);
      break;
    case op::kSetItem:
      if (stack_.size() < 2) fail("the stack is empty");
      append_from(stack_.size() - 2, PickleKind::kDict);
      break;
    case op::kSetItems:
      append_from(pop_mark(), PickleKind::kDict);
      break;
    case op::kEmptySet:
      push(PickleValues::kOther);
      break;
    case op::kFrozenSet:
      stack_.resize(pop_mark());
      push(PickleValues::kOther);
      break;
    case op::kAddItems:
      stack_.resize(pop_mark());
      if (!values_.is(top(), PickleKind::kOther)) fail("something is filled as if it were a set");
      break;
    case op::kBinPut:
      put(number<uint8_t>());
      break;
    case op::kLongBinPut:
      put(number<uint32_t>());
      break;
    case op::kMemoize:
      put(memoized_);
      break;
    case op::kBinGet:
      get(number<uint8_t>());
      break;
    case op::kLongBinGet:
      get(number<uint32_t>());
      break;
    case op::kGlobal: {
      const std::string_view module = line();
      push_global(module, line());
      break;
    }
    case op::kStackGlobal: {
      const PickleRef name = pop(), module = pop();
      if (!values_.is(name, PickleKind::kString) || !values_.is(module, PickleKind::kString)) {
        fail("a name that is no string");
      }
      push_global(values_.text(module), values_.text(name));
      break;
    }
    case op::kReduce: {
      const PickleRef arguments = pop(), callable = pop();
      push(reduce(callable, arguments));
      break;
    }
    case op::kNewObj: {
      const PickleRef arguments = pop(), type = pop();
      push(new_object(type, arguments));
      break;
    }
    case op::kBuild: {
      const PickleRef state = pop();
      build(top(), state);
      break;
    }
    case op::kBinPersId:
      push(persistent(pop()));
      break;
    default: {
      char code[8];
      std::snprintf(code, sizeof code, "0x%02x", opcode);
      fail(str("opcode ", code, ", which torch.save does not write,"));
    }
  }
  return true;
}

PickleRef Unpickler::run() {
  do {
    opcode_at_ = at_;
  } while (step(number<uint8_t>()));
  if (!marks_.empty() || stack_.size() != 1) fail(str("it ends with ", stack_.size(), " values instead of one"));
  return stack_[0];
}

}  // namespace skytrain::weights
