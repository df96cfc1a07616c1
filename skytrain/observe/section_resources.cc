// Where the time went, and the memory.

#include <cmath>
#include <iterator>

#include "skytrain/base/text.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

struct Part {
  const char* label;
  double seconds;
};

// A bar of 100 units in SVG: it needs no script and prints.
std::string stacked_bar(const std::vector<Part>& parts, double total) {
  std::string rects, words;
  double at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i].seconds > 0)) continue;
    const double width = parts[i].seconds / total * 100;
    rects += str("<rect class=\"part", i, "\" x=\"", significant(at, 6), "\" y=\"0\" width=\"", significant(width, 6),
                 "\" height=\"6\"><title>", parts[i].label, " ", percent(width / 100, 1), "</title></rect>\n");
    words += str(words.empty() ? "" : ", ", parts[i].label, " ", percent(width / 100, 1));
    at += width;
  }
  return str("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"", words,
             "\">\n", rects, "</svg>\n");
}

}  // namespace

std::string time_section(const Records& records) {
  const OrderedJson& recorded = child(records.summary, "time");
  const TimeSplit sums = records.metrics.time();
  const std::vector<Part> parts = {
      {"Waiting for data", first_of({number(recorded, "data_s"), sums.data})},
      {"Forward", first_of({number(recorded, "forward_s"), sums.forward})},
      {"Backward", first_of({number(recorded, "backward_s"), sums.backward})},
      {"Optimizer", first_of({number(recorded, "optimizer_s"), sums.optimizer})},
      {"Other", first_of({number(recorded, "other_s"), sums.other})},
      {"Evaluation", first_of({number(recorded, "evaluation_s"), sums.evaluation})},
      {"Checkpoints", first_of({number(recorded, "checkpoint_s"), sums.checkpoint})},
  };
  double total = 0;
  for (const Part& part : parts) total += part.seconds > 0 ? part.seconds : 0;
  if (!(total > 0) || !std::isfinite(total)) return "";

  Table table(recorded.is_null() ? "Where the time went, summed from the lines of metrics; saving is not in them"
                                 : "Where the time went",
              "tnn", {"Part", "Seconds", "Share"});
  for (size_t i = 0; i < parts.size(); ++i) {
    const double seconds = parts[i].seconds;
    table.row({str("<span class=\"key part", i, "\"></span>", parts[i].label),
               std::isnan(seconds) ? "not recorded" : significant(seconds, 4),
               std::isnan(seconds) ? "–" : percent(seconds / total, 1)});
  }
  table.row({"<strong>Total</strong>", "<strong>" + significant(total, 4) + "</strong>", percent(1, 1)});
  return section("time", "Time", stacked_bar(parts, total) + table.html());
}

std::string memory_section(const Records& records) {
  Table table("The most that was in use at a time", "tn", {"Quantity", "Value"});
  const double peak = number(records.summary, "peak_rss_bytes");
  if (!std::isnan(peak)) {
    table.row({"Peak resident memory of the processes", human_bytes(peak)});
    const double host = number(child(records.run, "host"), "memory_bytes");
    if (host > 0) table.row({"Of the machine's memory", str(percent(peak / host, 1), " of ", human_bytes(host))});
  }
  return table.empty() ? "" : section("memory", "Memory", table.html());
}

}  // namespace skytrain::observe
