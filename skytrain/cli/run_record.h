// skytrain/cli/run_record.h
//
// What the front program writes into a run's records: run.json and its attempts, and summary.json.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/recipe/resolve.h"
#include "skytrain/record/run_directory.h"

namespace skytrain::cli {

// JSON as the records hold it: indented, with a newline at the end. Bytes that are not UTF-8 become U+FFFD.
std::string record_text(const OrderedJson& json);

// run.json of a new run, without attempts.
OrderedJson new_run_json(const recipe::Resolved& resolved, const std::vector<std::string>& command,
                         double unix_seconds);
// One entry of `attempts`, as it is when the attempt starts.
OrderedJson new_attempt_json(bool resume, const std::vector<std::string>& command, double unix_seconds);
// Adds `fields` to the last attempt. Returns the number of attempts.
int64_t finish_attempt(FileSystem& fs, const record::RunDirectory& run, const OrderedJson& fields);

// What an attempt came to, as far as the front program has seen it.
struct AttemptResult {
  std::string status;                          // "complete" | "interrupted" | "failed"
  Json worker_summary = Json::object();        // of Finished or Interrupted
  std::optional<Error> error;                  // of a failure
  std::string checkpoint, resume_command;      // of an interruption
  uint64_t steps = 0, samples = 0;             // as last reported
  uint64_t saved_step = 0, saved_samples = 0;  // of `checkpoint`, after an interruption
  bool out_of_time = false;                    // the grace ended before the worker had: how far it was is not known
  std::optional<double> time_to_first_step_s;  // none: no step in this attempt
  uint64_t peak_rss_bytes = 0;                 // worker and front program together
  int64_t attempts = 0;
  std::string run_dir, report;  // absolute paths
  std::string torch_version;
  Json started = Json::object();  // resumed_from_step, parameters, devices, slot, precision, when it got so far
};

// summary.json: keys in the order of docs/run-directory.md, what the worker added beyond them at the end.
OrderedJson summary_json(const AttemptResult& result);

// How an interrupted run ends, for people: what was saved, and the command that goes on.
std::string interrupted_line(const AttemptResult& result);

// The table that ends a run, for people.
std::string summary_table(const OrderedJson& summary);

}  // namespace skytrain::cli
