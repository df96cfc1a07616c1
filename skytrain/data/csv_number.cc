#include "skytrain/data/csv_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>

namespace skytrain::data {
namespace {

constexpr std::string_view kMissing[] = {"",     "NA",   "N/A",  "n/a",  "na",   "#N/A", "nan", "NaN", "NAN",
                                         "-nan", "null", "Null", "NULL", "None", "nil",  "?",   "-",   "--"};

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  // Too large or too small: strtod tells which, by infinity or by (nearly) zero.
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(text).c_str(), nullptr);
  else if (error != std::errc())
    return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_missing(std::string_view text) {
  return std::find(std::begin(kMissing), std::end(kMissing), text) != std::end(kMissing);
}

}  // namespace skytrain::data
