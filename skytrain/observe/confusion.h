// skytrain/observe/confusion.h
//
// The confusion matrix of evaluation.json, checked, and what follows from it.

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::observe {

struct Confusion {
  std::vector<std::string> classes;
  std::vector<uint64_t> counts;  // size() * size(), row: true class, column: predicted
  std::string problem;           // why there is no matrix; "" and size() == 0: the record has none

  size_t size() const { return problem.empty() && !counts.empty() ? classes.size() : 0; }
  uint64_t at(size_t truth, size_t predicted) const { return counts[truth * classes.size() + predicted]; }
};

// Never throws: an evaluation that is null, or holds something else, gives an empty matrix, with the problem.
Confusion read_confusion(const OrderedJson& evaluation);

struct ClassResult {
  uint64_t samples = 0;                      // of that class
  uint64_t predicted = 0;                    // as that class
  double recall = 0, precision = 0, f1 = 0;  // NaN where the denominator is 0
};
std::vector<ClassResult> class_results(const Confusion& confusion);

struct Mistake {
  size_t truth = 0, predicted = 0;
  uint64_t count = 0;
};
// The most frequent mistakes, most frequent first; classes in their order among equals.
std::vector<Mistake> most_frequent_mistakes(const Confusion& confusion, size_t limit);

}  // namespace skytrain::observe
