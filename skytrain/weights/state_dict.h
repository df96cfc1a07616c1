// skytrain/weights/state_dict.h
//
// Finds the state dict in what torch.save wrote: the value itself, or in a checkpoint under one of the keys that people
// use.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/weights/pickle_values.h"
#include "skytrain/weights/refusal.h"

namespace skytrain::weights {

struct StateDict {
  struct Entry {
    std::string_view name;  // valid UTF-8, no name twice
    PickleRef tensor;
  };
  std::vector<Entry> entries;  // in the dict's order
  std::string note;            // which key it was under; empty when it was the file's value
  uint64_t ignored = 0;        // entries beside it, and those of it that are no tensors
};

// Throws Error(kData) when there is none, or when several could be meant.
StateDict find_state_dict(const PickleValues& values, PickleRef root, const Refusal& refuse);

}  // namespace skytrain::weights
