#include "skytrain/launch/slurm_hosts.h"

#include <algorithm>
#include <cstdint>

namespace skytrain::launch {
namespace {

constexpr size_t kMostHosts = 65536;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "01-03,07" -> 01 02 03 07; false: it is something else.
bool expand_bracket(std::string_view text, std::vector<std::string>& out) {
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    if (!is_number(first) || !is_number(last)) return false;
    const int64_t from = std::stoll(std::string(first)), to = std::stoll(std::string(last));
    if (to < from || static_cast<size_t>(to - from) >= kMostHosts) return false;
    for (int64_t number = from; number <= to; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      out.push_back(digits);
    }
    if (comma == std::string_view::npos) return out.size() <= kMostHosts;
    text.remove_prefix(comma + 1);
  }
}

// One element: text with any number of brackets.
bool expand_element(std::string_view text, std::vector<std::string>& hosts) {
  std::vector<std::string> begun = {""};
  while (!text.empty()) {
    std::vector<std::string> pieces;
    if (text[0] == '[') {
      const size_t end = text.find(']');
      if (end == std::string_view::npos || !expand_bracket(text.substr(1, end - 1), pieces)) return false;
      text.remove_prefix(end + 1);
    } else {
      const size_t end = std::min(text.find('['), text.size());
      pieces.emplace_back(text.substr(0, end));
      if (pieces[0].find(']') != std::string::npos) return false;
      text.remove_prefix(end);
    }
    if (begun.size() * pieces.size() > kMostHosts) return false;
    std::vector<std::string> longer;
    for (const std::string& start : begun) {
      for (const std::string& piece : pieces) longer.push_back(start + piece);
    }
    begun = std::move(longer);
  }
  hosts.insert(hosts.end(), begun.begin(), begun.end());
  return !begun[0].empty() && hosts.size() <= kMostHosts;
}

}  // namespace

std::optional<std::vector<std::string>> expand_slurm_hosts(std::string_view list) {
  const bool odd =
      std::any_of(list.begin(), list.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; });
  if (odd) return std::nullopt;
  std::vector<std::string> hosts;
  while (true) {
    int depth = 0;
    size_t end = 0;
    for (; end < list.size() && (depth > 0 || list[end] != ','); ++end) {
      if (list[end] == '[') ++depth;
      if (list[end] == ']') --depth;
    }
    if (!expand_element(list.substr(0, end), hosts)) return std::nullopt;
    if (end == list.size()) return hosts;
    list.remove_prefix(end + 1);
  }
}

}  // namespace skytrain::launch
