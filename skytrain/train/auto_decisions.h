// skytrain/train/auto_decisions.h
//
// What `auto` means on this machine. Decisions are written into the recipe, so that a resumed run replays them instead
// of deciding again.

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/recipe/recipe.h"

namespace skytrain::train {

struct Machine {
  int cores = 1;              // that this process may use
  uint64_t memory_bytes = 0;  // available; 0: unknown
};
Machine this_machine();

// Decisions that take a measurement: the value and the reason.
struct Measurements {
  // Floating-point operations of a forward pass of one sample.
  std::function<int64_t()> sample_flops;
  // train.batch; called when the recipe has devices and memory format.
  std::function<std::pair<int64_t, std::string>(const recipe::Recipe&)> batch;
  // train.precision; called when the recipe has all the others.
  std::function<std::pair<std::string, std::string>(const recipe::Recipe&)> precision;
};

// Fills devices, train.memory_format, train.batch, train.slot and train.precision where they are auto. parameters: of
// the model. Returns (key path, reason) of each decision taken.
std::vector<std::pair<std::string, std::string>> decide(recipe::Recipe& recipe, int64_t parameters,
                                                        const Machine& machine, const Measurements& measurements);

}  // namespace skytrain::train
