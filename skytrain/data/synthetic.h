// skytrain/data/synthetic.h
//
// Format "synthetic": labelled images made from a seed, for demos, tests and benchmarks that should not wait for a
// download. Each class has a smooth random pattern; a sample is its class's pattern, shifted a little, plus noise.
// A small network learns it to well above 95%.

#pragma once
#include <cstdint>
#include <memory>

#include "skytrain/data/memory_dataset.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

class SyntheticDataset final : public MemoryDataset {
 public:
  // Sample i has class i mod classes and is a pure function of (seed, eval, i): integer arithmetic only, so it is the
  // same on every machine. Training and evaluation share the patterns and differ in shifts and noise.
  // Throws Error(kRecipe) when the pixels would take more than kMaxBytes.
  static std::unique_ptr<SyntheticDataset> make(const recipe::DatasetSpec& spec, int64_t classes, uint64_t seed,
                                                bool eval);

  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

 private:
  using MemoryDataset::MemoryDataset;
};

}  // namespace skytrain::data
