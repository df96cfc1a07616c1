// skytrain/weights/pickle_values.h
//
// The values that a pickle describes, in an arena: a value is a number, containers are chains of numbers. Nothing owns
// anything, so a list that holds itself is neither a leak nor an endless recursion; whoever walks the values must not
// recurse either. Strings are views into the pickle's bytes. 16 bytes a value, 8 for each place in a container.

#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "skytrain/weights/pickle_globals.h"

namespace skytrain::weights {

using PickleRef = uint32_t;

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kLong,   // more than 64 bits: its bytes, little-endian
  kFloat,  // which one does not matter to anyone here
  kString,
  kBytes,
  kTuple,
  kList,
  kDict,     // key, value, key, value …: as they were set, a key may be there twice
  kGlobal,   // a name
  kStorage,  // child 0: the tuple ("storage", type, key, location, elements[, view])
  kTensor,   // child 0: the tuple (storage, offset, size, stride, …); none: a Parameter that was never filled
  kOther,    // a value that no weights are in
};
std::string_view kind_words(PickleKind kind);  // "a list"

class PickleValues {
 public:
  // The values that need no place of their own.
  static constexpr PickleRef kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3, kOther = 4, kFloat = 5, kSmallInts = 6;
  static constexpr int64_t kSmallIntEnd = 256;
  static constexpr size_t kNodeBytes = 16, kCellBytes = 8;  // what a value and a place cost

  PickleValues();

  size_t size() const { return nodes_.size(); }
  PickleKind kind(PickleRef ref) const { return nodes_[ref].kind; }
  bool is(PickleRef ref, PickleKind kind) const { return nodes_[ref].kind == kind; }
  int64_t integer(PickleRef ref) const { return nodes_[ref].integer; }  // kInt, kBool
  std::string_view text(PickleRef ref) const {
    return {nodes_[ref].text, nodes_[ref].count};
  }  // kString, kBytes, kLong
  const PickleGlobal& global(PickleRef ref) const { return *nodes_[ref].global; }
  bool flag(PickleRef ref) const { return nodes_[ref].flag; }  // kDict: an OrderedDict. kTensor: a Parameter

  // Of tuples, lists, dicts (twice the pairs), storages and tensors.
  uint32_t count(PickleRef ref) const { return nodes_[ref].count; }
  PickleRef child(PickleRef ref, uint32_t index) const;  // REQUIRES index < count; takes `index` steps

  class Iterator {
   public:
    Iterator(const PickleValues& values, uint32_t cell) : values_(values), cell_(cell) {}
    PickleRef operator*() const { return values_.cells_[cell_].value; }
    Iterator& operator++() {
      cell_ = values_.cells_[cell_].next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return cell_ != other.cell_; }

   private:
    const PickleValues& values_;
    uint32_t cell_;
  };
  struct Children {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };
  // Walks the places that there are now; what is appended meanwhile comes too.
  Children children(PickleRef ref) const { return {{*this, nodes_[ref].cells.head}, {*this, kEnd}}; }

  PickleRef add_integer(int64_t value);
  PickleRef add_text(PickleKind kind, std::string_view text);  // REQUIRES size < 4 GiB
  PickleRef add_container(PickleKind kind, bool flag = false);
  PickleRef add_global(const PickleGlobal& global);
  void append(PickleRef container, PickleRef value);
  void replace_first_child(PickleRef container, PickleRef value);  // appends when there is none

 private:
  static constexpr uint32_t kEnd = ~uint32_t{0};
  struct Node {
    PickleKind kind = PickleKind::kNone;
    bool flag = false;
    uint32_t count = 0;
    union {
      int64_t integer = 0;
      const char* text;
      const PickleGlobal* global;
      struct {
        uint32_t head, tail;
      } cells;
    };
  };
  struct Cell {
    PickleRef value;
    uint32_t next;
  };
  static_assert(sizeof(Node) == kNodeBytes && sizeof(Cell) == kCellBytes);

  // Deques grow without a second copy of everything.
  std::deque<Node> nodes_;
  std::deque<Cell> cells_;
};

}  // namespace skytrain::weights
