// skytrain/base/text.h
//
// Words for people: joining, numbers and sizes, "did you mean". Free of fmt, so that units which include LibTorch's
// headers may use it.

#pragma once
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace skytrain {

// str("step ", 12, " of ", 20) -> "step 12 of 20". Doubles are printed with up to 6 significant digits.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The shortest text that reads back as the same double ("0.001", "1e-05", "nan").
std::string shortest_double(double value);

std::string human_bytes(double bytes);                    // "11.0 MiB"
std::string formatted(const char* format, double value);  // as printf does: ("%.2f", 0.5) -> "0.50"
std::string human_seconds(double seconds);                // "4.2 s", "3 min 05 s", "2 h 10 min"
std::string human_count(double count);                    // "60,000"

// The candidate closest to `word` (Damerau-Levenshtein distance, case folded), or "" when none is close enough
// (more than a third of the word's length, at least 1, at most 3 edits).
std::string closest(std::string_view word, const std::vector<std::string>& candidates);
// " (did you mean \"adam\"?)" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// Printable form of untrusted text: control characters and invalid UTF-8 as \xNN, cut at `limit` bytes with "…".
std::string printable(std::string_view text, size_t limit = 200);

// Offset of the first byte that is not well-formed UTF-8, or npos.
size_t invalid_utf8_at(std::string_view text);

// Columns that `text` (UTF-8, no control characters) takes on a terminal; East Asian wide characters take two.
size_t display_width(std::string_view text);
// `text`, or its start and "…" when it is wider than `columns`.
std::string cut_to_width(std::string_view text, size_t columns);

std::string base64(std::string_view bytes);

}  // namespace skytrain
