#include "skytrain/recipe/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "skytrain/base/text.h"

namespace skytrain::recipe {
namespace {

struct ByteUnit {
  const char* text;
  uint64_t bytes;
};
constexpr ByteUnit kByteUnits[] = {
    {"B", 1},
    {"KB", 1000},
    {"KiB", 1024},
    {"MB", 1000 * 1000},
    {"MiB", 1 << 20},
    {"GB", 1000 * 1000 * 1000},
    {"GiB", 1 << 30},
    {"TB", 1'000'000'000'000},
    {"TiB", uint64_t{1} << 40},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t digits(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

// Length of the number at the start of `text`: [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)?; 0 if none.
size_t number_length(std::string_view text) {
  size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  const size_t before = digits(text, at);
  at += before;
  size_t after = 0;
  if (at < text.size() && text[at] == '.') {
    after = digits(text, at + 1);
    at += 1 + after;
  }
  if (before + after == 0) return 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t count = digits(text, exponent);
    if (count > 0) at = exponent + count;
  }
  return at;
}

std::string quoted(std::string_view text) { return "\"" + printable(text, 80) + "\""; }

std::string number_hint(std::string_view text, const char* example = "write it like 0.001 or 1e-3") {
  if (text.find(',') != text.npos) return "decimals have a point: 1.5";
  if (text.find('_') != text.npos) return "digits only, without underscores: 1000000 or 1e6";
  if (text.find("0x") != text.npos || text.find("0X") != text.npos || text.find("0o") != text.npos) {
    return "decimal digits only";
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return "ASCII digits only; these are other characters that look like digits";
  }
  if (text.find(' ') != text.npos) return "a number has no spaces and no unit here";
  return example;
}

bool is_nan_or_infinity(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  if (!text.empty() && text[0] == '.') text.remove_prefix(1);
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

}  // namespace

std::optional<Refusal> read_real(std::string_view text, double* out) {
  if (is_nan_or_infinity(text)) return Refusal{quoted(text) + " is not a finite number", {}};
  if (number_length(text) != text.size() || text.empty()) {
    return Refusal{quoted(text) + " is not a number", number_hint(text)};
  }
  std::string_view unsigned_text = text;
  if (unsigned_text[0] == '+') unsigned_text.remove_prefix(1);
  const auto [end, code] = std::from_chars(unsigned_text.data(), unsigned_text.data() + unsigned_text.size(), *out);
  if (code == std::errc::result_out_of_range) {
    return Refusal{quoted(text) + " is beyond what a double can hold", {}};
  }
  if (code != std::errc() || end != unsigned_text.data() + unsigned_text.size()) {
    return Refusal{quoted(text) + " is not a number", number_hint(text)};
  }
  return std::nullopt;
}

std::optional<Refusal> read_integer(std::string_view text, int64_t* out) {
  size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const size_t count = digits(text, at);
  if (count == 0 || at + count != text.size()) {
    double value = 0;
    if (read_real(text, &value))
      return Refusal{quoted(text) + " is not a whole number", number_hint(text, "write it in digits, like 64")};
    std::string hint;
    if (value == std::floor(value) && std::fabs(value) < 1e15) {
      hint = str("write ", static_cast<long long>(value));
    }
    return Refusal{quoted(text) + " is not a whole number in digits", hint};
  }
  if (count > 1 && text[at] == '0') {
    return Refusal{quoted(text) + " has a leading zero",
                   "some readers of YAML take such a number as octal: leave the zero out"};
  }
  if (text[0] == '+') text.remove_prefix(1);
  if (std::from_chars(text.data(), text.data() + text.size(), *out).ec != std::errc()) {
    return Refusal{quoted(text) + " is too large", {}};
  }
  return std::nullopt;
}

std::optional<Refusal> read_boolean(std::string_view text, bool* out) {
  if (text == "true" || text == "True" || text == "TRUE") {
    *out = true;
  } else if (text == "false" || text == "False" || text == "FALSE") {
    *out = false;
  } else {
    return Refusal{quoted(text) + " is neither true nor false", {}};
  }
  return std::nullopt;
}

std::optional<Refusal> read_duration(std::string_view text, const std::vector<std::string>& known, Duration* out) {
  constexpr const char* kExample = "an amount with its unit, like 500 steps, 2 epochs, 5% or 10 min";
  const size_t length = number_length(text);
  if (length == 0) return Refusal{quoted(text) + " is not a duration", std::string("write ") + kExample};
  double value = 0;
  if (auto refusal = read_real(text.substr(0, length), &value)) return refusal;
  std::string_view unit = text.substr(length);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return Refusal{quoted(text) + " has no unit", std::string("write ") + kExample};
  const UnitName* const named = find_unit(unit);
  if (named == nullptr) {
    return Refusal{"unknown unit " + quoted(unit) + did_you_mean(unit, known), "known: " + join(known, ", ")};
  }
  if (value < 0) return Refusal{quoted(text) + " is negative", {}};
  if ((named->unit == Duration::Unit::kSteps || named->unit == Duration::Unit::kSamples) &&
      value != std::floor(value)) {
    return Refusal{quoted(text) + " is not a whole number of " + named->text, {}};
  }
  value *= named->factor;
  if (!std::isfinite(value)) return Refusal{quoted(text) + " is beyond what a double can hold", {}};
  *out = Duration{value + 0.0, named->unit};  // + 0.0 turns -0 into 0
  return std::nullopt;
}

std::optional<Refusal> read_bytes(std::string_view text, uint64_t* out) {
  const size_t length = number_length(text);
  std::string_view unit = text.substr(length);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double value = 0;
  if (length == 0 || unit.empty())
    return Refusal{quoted(text) + " is not a size with its unit", "write it like 512 MiB or 4 GiB"};
  if (auto refusal = read_real(text.substr(0, length), &value)) return refusal;
  std::vector<std::string> known;
  for (const ByteUnit& named : kByteUnits) {
    known.emplace_back(named.text);
    if (unit != named.text) continue;
    const double bytes = value * double(named.bytes);
    if (!(bytes >= 1) || bytes >= 0x1p63)
      return Refusal{quoted(text) + (bytes < 1 ? " is less than a byte" : " is too large"), {}};
    *out = static_cast<uint64_t>(std::llround(bytes));
    return std::nullopt;
  }
  return Refusal{"unknown unit " + quoted(unit) + did_you_mean(unit, known), "known: " + join(known, ", ")};
}

std::string bytes_text(uint64_t bytes) {
  const ByteUnit* best = &kByteUnits[0];
  for (const ByteUnit& unit : kByteUnits)
    if (bytes % unit.bytes == 0 && unit.bytes > best->bytes) best = &unit;
  return str(bytes / best->bytes, " ", best->text);
}

bool needs_quotes(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return true;
  bool boolean = false;
  if (!read_boolean(text, &boolean)) return true;
  if (number_length(text) == text.size() || is_nan_or_infinity(text)) return true;
  if (text.front() == ' ' || text.back() == ' ') return true;
  const char first = text.front();
  if (first == '-' || first == '=' || first == '%') return true;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
    if (!letter && std::string_view("_./%=+- ").find(c) == std::string_view::npos) return true;
  }
  return false;
}

}  // namespace skytrain::recipe
