// skytrain/record/metrics_line.h
//
// One line of metrics.jsonl as numbers, read without building a JSON tree: a run that logs each step has a hundred
// thousand of them. docs/run-directory.md gives keys and units.

#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace skytrain::record {

// A field that the line lacks, or whose value is null (how JSON writes NaN and infinity), is NaN.
struct MetricsLine {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  uint64_t step = 0;
  double t = kNone, samples = kNone, epoch = kNone, loss = kNone, lr = kNone;
  double world = kNone, generation = kNone, samples_per_second = kNone;
  double data_s = kNone, forward_s = kNone, backward_s = kNone, optimizer_s = kNone, other_s = kNone;

  bool is_eval = false;  // the line has an `eval` object
  double eval_loss = kNone, eval_top1 = kNone, eval_samples = kNone, eval_seconds = kNone;
};

// Keys that are not known are passed over. nullopt when the text is not one JSON object with a whole number `step`;
// *problem then says what is wrong.
std::optional<MetricsLine> parse_metrics_line(std::string_view text, std::string* problem);

}  // namespace skytrain::record
