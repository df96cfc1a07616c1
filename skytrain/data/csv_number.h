// skytrain/data/csv_number.h
//
// Numbers as tables of text hold them. Thread-safe.

#pragma once
#include <optional>
#include <string_view>

namespace skytrain::data {

// "-1", "+2.5", "1e-3": the whole text is a decimal number, and finite. None of hexadecimal, "inf", "1,5", "1_000".
std::optional<double> parse_number(std::string_view text);

// What other programs write where there is no value: "", NA, nan, null, …
bool is_missing(std::string_view text);

}  // namespace skytrain::data
