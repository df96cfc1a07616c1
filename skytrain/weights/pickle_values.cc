#include "skytrain/weights/pickle_values.h"

namespace skytrain::weights {

std::string_view kind_words(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "a truth value";
    case PickleKind::kInt:
    case PickleKind::kLong:
    case PickleKind::kFloat:
      return "a number";
    case PickleKind::kString:
      return "a string";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kDict:
      return "a dict";
    case PickleKind::kGlobal:
      return "a name";
    case PickleKind::kStorage:
      return "a storage";
    case PickleKind::kTensor:
      return "a tensor";
    case PickleKind::kOther:
      break;
  }
  return "another value";
}

PickleValues::PickleValues() {
  nodes_.emplace_back();
  for (const int64_t truth : {0, 1}) {
    nodes_.emplace_back();
    nodes_.back().kind = PickleKind::kBool;
    nodes_.back().integer = truth;
  }
  add_container(PickleKind::kTuple);
  for (const PickleKind kind : {PickleKind::kOther, PickleKind::kFloat}) {
    nodes_.emplace_back();
    nodes_.back().kind = kind;
  }
  for (int64_t value = 0; value < kSmallIntEnd; ++value) {
    nodes_.emplace_back();
    nodes_.back().kind = PickleKind::kInt;
    nodes_.back().integer = value;
  }
}

PickleRef PickleValues::child(PickleRef ref, uint32_t index) const {
  uint32_t cell = nodes_[ref].cells.head;
  while (index-- > 0) cell = cells_[cell].next;
  return cells_[cell].value;
}

PickleRef PickleValues::add_integer(int64_t value) {
  if (value >= 0 && value < kSmallIntEnd) return kSmallInts + static_cast<PickleRef>(value);
  nodes_.emplace_back();
  nodes_.back().kind = PickleKind::kInt;
  nodes_.back().integer = value;
  return static_cast<PickleRef>(nodes_.size() - 1);
}

PickleRef PickleValues::add_text(PickleKind kind, std::string_view text) {
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  nodes_.back().text = text.data();
  nodes_.back().count = static_cast<uint32_t>(text.size());
  return static_cast<PickleRef>(nodes_.size() - 1);
}

PickleRef PickleValues::add_container(PickleKind kind, bool flag) {
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  nodes_.back().flag = flag;
  nodes_.back().cells = {kEnd, kEnd};
  return static_cast<PickleRef>(nodes_.size() - 1);
}

PickleRef PickleValues::add_global(const PickleGlobal& global) {
  nodes_.emplace_back();
  nodes_.back().kind = PickleKind::kGlobal;
  nodes_.back().global = &global;
  return static_cast<PickleRef>(nodes_.size() - 1);
}

void PickleValues::append(PickleRef container, PickleRef value) {
  Node& node = nodes_[container];
  const auto cell = static_cast<uint32_t>(cells_.size());
  cells_.push_back({value, kEnd});
  if (node.count == 0) {
    node.cells.head = cell;
  } else {
    cells_[node.cells.tail].next = cell;
  }
  node.cells.tail = cell;
  ++node.count;
}

void PickleValues::replace_first_child(PickleRef container, PickleRef value) {
  if (nodes_[container].count == 0) {
    append(container, value);
  } else {
    cells_[nodes_[container].cells.head].value = value;
  }
}

}  // namespace skytrain::weights
