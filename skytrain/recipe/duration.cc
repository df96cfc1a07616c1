#include "skytrain/recipe/duration.h"

#include <cmath>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::recipe {
namespace {

using Unit = Duration::Unit;

constexpr UnitName kUnits[] = {
    {"steps", Unit::kSteps, 1},     {"step", Unit::kSteps, 1},       {"samples", Unit::kSamples, 1},
    {"sample", Unit::kSamples, 1},  {"epochs", Unit::kEpochs, 1},    {"epoch", Unit::kEpochs, 1},
    {"%", Unit::kPercent, 1},       {"s", Unit::kSeconds, 1},        {"sec", Unit::kSeconds, 1},
    {"second", Unit::kSeconds, 1},  {"seconds", Unit::kSeconds, 1},  {"min", Unit::kSeconds, 60},
    {"minute", Unit::kSeconds, 60}, {"minutes", Unit::kSeconds, 60}, {"h", Unit::kSeconds, 3600},
    {"hour", Unit::kSeconds, 3600}, {"hours", Unit::kSeconds, 3600}, {"d", Unit::kSeconds, 86400},
    {"day", Unit::kSeconds, 86400}, {"days", Unit::kSeconds, 86400},
};

}  // namespace

const UnitName* find_unit(std::string_view text) {
  for (const UnitName& unit : kUnits) {
    if (unit.text == text) return &unit;
  }
  return nullptr;
}

std::string to_string(const Duration& duration) {
  const std::string number = shortest_double(duration.value);
  const char* const plural = duration.value == 1 ? "" : "s";
  switch (duration.unit) {
    case Unit::kSteps:
      return number + " step" + plural;
    case Unit::kSamples:
      return number + " sample" + plural;
    case Unit::kEpochs:
      return number + " epoch" + plural;
    case Unit::kPercent:
      return number + "%";
    case Unit::kSeconds:
      return number + " s";
  }
  throw Error(ErrorKind::kInternal, "", "a duration with an unknown unit");
}

uint64_t to_samples(const Duration& duration, uint64_t batch, uint64_t samples_per_epoch, uint64_t total_samples) {
  const auto as_count = [](double samples) -> uint64_t {
    // 2^63: what does not fit is as good as never.
    return samples >= 9223372036854775808.0 ? uint64_t{1} << 63 : static_cast<uint64_t>(std::round(samples));
  };
  const auto times = [&](double factor) { return as_count(duration.value * factor); };
  switch (duration.unit) {
    case Unit::kSteps: {  // the last step of an epoch holds what is left of it
      const double per_epoch = std::ceil(static_cast<double>(samples_per_epoch) / static_cast<double>(batch));
      const double epochs = std::floor(duration.value / per_epoch);
      const double rest = (duration.value - epochs * per_epoch) * static_cast<double>(batch);
      return as_count(epochs * static_cast<double>(samples_per_epoch) +
                      std::min(rest, static_cast<double>(samples_per_epoch)));
    }
    case Unit::kSamples:
      return times(1);
    case Unit::kEpochs:
      return times(static_cast<double>(samples_per_epoch));
    case Unit::kPercent:
      return times(static_cast<double>(total_samples) / 100);
    case Unit::kSeconds:
      break;
  }
  throw Error(ErrorKind::kInternal, "", "a time has no number of samples");
}

}  // namespace skytrain::recipe
