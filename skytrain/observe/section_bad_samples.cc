// Samples that a run left out.

#include <algorithm>

#include "skytrain/base/text.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {
namespace {

// The rest is in summary.json.
constexpr size_t kMostRows = 100;

}  // namespace

std::string bad_samples_section(const Records& records) {
  const OrderedJson& bad = child(records.summary, "bad_samples");
  Table table("Could not be decoded: they count neither in the loss nor in the metrics", "ttt",
              {"Sample", "Set", "Problem"});
  size_t all = 0;
  for (const auto& [set, label] : {std::pair("train", "Training"), std::pair("eval", "Evaluation")}) {
    const OrderedJson& samples = child(bad, set);
    if (!samples.is_array()) continue;
    for (const OrderedJson& sample : samples) {
      if (all++ < kMostRows)
        table.row({escape(text(sample, "name"), 300), label, escape(text(sample, "problem"), 300)});
    }
  }
  if (all == 0) return "";
  const std::string rest =
      all > kMostRows ? str("<p>", count(double(all - kMostRows)), " more are in summary.json.</p>\n") : "";
  return section("bad-samples", "Samples left out", table.html() + rest);
}

}  // namespace skytrain::observe
