#include "skytrain/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace skytrain {
namespace {

char fold(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = fold(a[i - 1]) == fold(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1])) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before = previous;
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Length of the well-formed UTF-8 sequence at the start of `text`, with its code point; 0 if there is none.
size_t decode_utf8(std::string_view text, uint32_t* code_point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) {
    *code_point = first;
    return 1;
  }
  size_t length = 0;
  uint32_t value = 0, least = 0;
  if ((first & 0xE0) == 0xC0) {
    length = 2, value = first & 0x1F, least = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    length = 3, value = first & 0x0F, least = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    length = 4, value = first & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  if (value < least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  *code_point = value;
  return length;
}

// Would change how the terminal shows the rest of the line: C0, DEL, C1, and the bidirectional overrides.
bool is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x2028 || c == 0x2029;
}

bool is_wide(uint32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string shortest_double(double value) {
  if (std::isnan(value)) return "nan";
  // Plain digits where people write them ("0.0003", "600000"), as Python and JSON writers do.
  const double magnitude = std::fabs(value);
  const bool plain = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  std::array<char, 64> text;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  return std::string(text.data(), end);
}

std::string human_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1023.95 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  char text[64];
  if (seconds < 0.9995) {
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1000);
  } else if (seconds < 59.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3599.5) {
    const long whole = std::lround(seconds);
    std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
  } else {
    const auto minutes = static_cast<long long>(std::llround(seconds / 60));
    std::snprintf(text, sizeof text, "%lld h %02lld min", minutes / 60, minutes % 60);
  }
  return text;
}

std::string human_count(double count) {
  if (!std::isfinite(count)) return shortest_double(count);
  char digits[400];
  // Small rates ("0.37 samples/s") need their decimals, large ones are noise after the point.
  const bool whole = count == std::floor(count) || std::fabs(count) >= 100;
  std::snprintf(digits, sizeof digits, "%.*f", whole ? 0 : (std::fabs(count) < 10 ? 2 : 1), count);
  std::string text = digits;
  size_t point = text.find('.');
  if (point == std::string::npos) point = text.size();
  const size_t first = text[0] == '-' ? 1 : 0;
  for (size_t i = point; i > first + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 100) return {};
  const size_t limit = std::clamp<size_t>(word.size() / 3, 1, 3);
  std::string best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // A candidate that shares no letter with a very short word is no suggestion.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = closest(word, candidates);
  return best.empty() ? std::string() : " (did you mean \"" + printable(best) + "\"?)";
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = decode_utf8(text, &code_point);
    std::string piece;
    if (length > 0 && !is_control(code_point)) {
      piece = text.substr(0, length);
    } else {
      for (const char c : text.substr(0, std::max<size_t>(length, 1))) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\x%02X", static_cast<unsigned char>(c));
        piece += escape;
      }
    }
    if (out.size() + piece.size() > limit) return out + "…";
    out += piece;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

size_t invalid_utf8_at(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint32_t code_point = 0;
    const size_t length = decode_utf8(text.substr(at), &code_point);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = decode_utf8(text, &code_point);
    width += length > 0 && is_wide(code_point) ? 2 : 1;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return width;
}

std::string cut_to_width(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::string out;
  size_t width = 1;  // the ellipsis
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = std::max<size_t>(decode_utf8(text, &code_point), 1);
    width += display_width(text.substr(0, length));
    if (width > columns) break;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out + "…";
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

}  // namespace skytrain
