// skytrain/data/inspection.h
//
// What is in a data set: how many samples of each class, pictures of which sizes and kinds, which can't be used and
// which are there more than once.

#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

struct Spread {
  uint64_t least = 0, median = 0, most = 0;  // median: the lower of two
};

struct Inspection {
  std::vector<uint64_t> per_class;  // samples by label; empty: targets are values

  // Of sets of encoded pictures; those that can't be used don't count for width and height.
  uint64_t jpeg = 0, png = 0;
  Spread bytes, width, height;
  struct Broken {
    uint64_t index = 0;
    std::string name, problem;
  };
  std::vector<Broken> broken;  // by index
  // Samples whose files are equal byte for byte: indexes, ascending, of each group; groups by their first.
  std::vector<std::vector<uint64_t>> duplicates;
  uint64_t contradictions = 0;  // groups of which some have another class than others
};

// Reads and decodes every picture, several at once. done: told how many samples are done, by one thread at a time.
// stop: true ends it soon, with Error(kInterrupted). Throws Error(kEnvironment) for disk trouble.
Inspection inspect(const Dataset& dataset, const std::function<void(uint64_t)>& done,
                   const std::function<bool()>& stop);

}  // namespace skytrain::data
