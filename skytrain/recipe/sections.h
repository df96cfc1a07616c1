// skytrain/recipe/sections.h
//
// The declaration of every key of a recipe. Built at the first call.

#pragma once
#include <cstdint>

#include "skytrain/recipe/recipe.h"
#include "skytrain/recipe/section.h"

namespace skytrain::recipe {

const Section<Recipe>& recipe_section();
const Section<ModelSpec>& model_section();
const Section<DataSpec>& data_section();
const Section<OptimizerSpec>& optimizer_section();
const Section<ScheduleSpec>& schedule_section();
const Section<TrainSpec>& train_section();

// Of steps, of samples: far beyond what anyone trains, and small enough that products of them fit into 64 bits and
// single ones into a double.
inline constexpr int64_t kMaxCount = 1'000'000'000'000;

// The reference does not burden its readers with a bound that only a slip of the pen meets; the refusal names it.
template <class T>
Codec<T> described_as(const char* type, Codec<T> codec) {
  codec.type = type;
  return codec;
}

}  // namespace skytrain::recipe
