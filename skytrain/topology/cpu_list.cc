#include "skytrain/topology/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace skytrain::topology {
namespace {

std::optional<int> cpu_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kLargestCpu) return {};
  return value;
}

}  // namespace

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  CpuList cpus;
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    const size_t dash = range.find('-');
    const auto first = cpu_number(range.substr(0, dash));
    const auto last = dash == range.npos ? first : cpu_number(range.substr(dash + 1));
    if (!first || !last || *last < *first) return {};
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (cpus.size() > size_t{2} * kLargestCpu) return {};  // the same ranges over and over
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string cpu_list_text(const CpuList& cpus) {
  std::string out;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last > i) out += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return out;
}

bool overlap(const CpuList& a, const CpuList& b) { return !intersection(a, b).empty(); }

CpuList intersection(const CpuList& a, const CpuList& b) {
  CpuList out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

CpuList united(const CpuList& a, const CpuList& b) {
  CpuList out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

}  // namespace skytrain::topology
