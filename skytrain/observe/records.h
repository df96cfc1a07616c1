// skytrain/observe/records.h
//
// All that a run left behind, read once and forgivingly: any record may be missing, cut short or damaged, and a report
// is then made of the others. docs/run-directory.md describes the files.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/record/metrics.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::observe {

// Seconds that training spent on each thing; NaN where nothing was recorded.
struct TimeSplit {
  double data, forward, backward, optimizer, other, evaluation, checkpoint;
};

// A stretch of steps that was trained by the same processes.
struct Membership {
  uint64_t first_step = 0, last_step = 0;
  double world = 0, generation = 0;
};

struct MetricsHistory {
  std::vector<record::MetricsLine> train, eval;  // in the order of the file
  std::vector<Membership> memberships;
  record::MetricsScan scan;
  uint64_t steps_without_finite_loss = 0, first_step_without_finite_loss = 0;

  uint64_t last_step() const;
  TimeSplit time() const;  // sums over the lines
  // The evaluation with the highest top1; nullptr when there is none.
  const record::MetricsLine* best_eval() const;
};

struct Records {
  std::string directory;
  OrderedJson recipe, run, evaluation, summary;  // objects, or null when missing or damaged
  std::string recipe_yaml;
  MetricsHistory metrics;
  std::vector<std::string> notes;  // what could not be read, one line each
};

Records load_records(const FileSystem& fs, const record::RunDirectory& run);

// Look-ups that never throw, because a record may hold anything.
const OrderedJson& child(const OrderedJson& object, std::string_view key);  // null when absent
double number(const OrderedJson& object, std::string_view key);             // NaN when absent or no number
std::string text(const OrderedJson& object, std::string_view key);          // "" when absent or no string

// The first of the values that is not NaN.
double first_of(std::initializer_list<double> values);

}  // namespace skytrain::observe
