// skytrain/recipe/duration.h
//
// An amount of training or of time with its unit, as a recipe states it: `500 steps`, `3 epochs`, `60000 samples`,
// `5%`, `10 min`.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace skytrain::recipe {

struct Duration {
  enum class Unit { kSteps, kSamples, kEpochs, kPercent, kSeconds };
  double value = 0;  // finite, >= 0
  Unit unit = Unit::kSteps;

  // "auto", where a key takes it: no amount that a recipe can have.
  static constexpr Duration automatic() { return {0, Unit::kSeconds}; }
  bool operator==(const Duration&) const = default;
};

// The unit that `text` names ("steps", "step", "%", "min", …) with the factor to Duration's own unit; nullptr if none.
struct UnitName {
  const char* text;
  Duration::Unit unit;
  double factor;
};
const UnitName* find_unit(std::string_view text);

std::string to_string(const Duration& duration);  // "500 steps", "5%", "600 s": reads back as the same value

// The samples that `duration` of a run is, rounded to the nearest sample. kPercent is of total_samples.
// REQUIRES: unit is not kSeconds.
uint64_t to_samples(const Duration& duration, uint64_t batch, uint64_t samples_per_epoch, uint64_t total_samples);

}  // namespace skytrain::recipe
