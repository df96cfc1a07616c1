// skytrain/recipe/scalar.h
//
// Numbers, booleans and durations as a recipe writes them: the core schema of YAML 1.2 ("1e-3" is a number), strictly.
// No nan, no infinity, no hexadecimal, no underscores, nothing left over. Pure functions of the text.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/recipe/duration.h"

namespace skytrain::recipe {

// Why a text was refused: one clause, and what to write instead (may be empty).
struct Refusal {
  std::string what, hint;
};

std::optional<Refusal> read_real(std::string_view text, double* out);
// Whole numbers in digits only; "8.0" and "1e1" are refused with the digits to write.
std::optional<Refusal> read_integer(std::string_view text, int64_t* out);
std::optional<Refusal> read_boolean(std::string_view text, bool* out);
// "500 steps", "5%", "10 min". Steps and samples are whole. known: the units to name when the unit is unknown.
std::optional<Refusal> read_duration(std::string_view text, const std::vector<std::string>& known, Duration* out);

// "512 MiB", "4 GB": whole bytes, above 0. Units B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024).
std::optional<Refusal> read_bytes(std::string_view text, uint64_t* out);
std::string bytes_text(uint64_t bytes);  // in the largest unit that divides it: reads back as the same number

// True if YAML's core schema reads the plain `text` as something other than a string: such a string needs quotes.
bool needs_quotes(std::string_view text);

}  // namespace skytrain::recipe
