// skytrain/record/metrics.h
//
// metrics.jsonl: one JSON object a line, appended as training goes.
//
//   {"t":1764510607.125,"step":100,"samples":6400,"epoch":0.107,"loss":0.51,"lr":0.001,"world":1,"generation":0,
//    "samples_per_second":15023.1,"data_s":…,"forward_s":…,"backward_s":…,"optimizer_s":…,"other_s":…}
//   {"t":…,"step":938,"samples":60000,"epoch":1.0,"eval":{"loss":0.08,"top1":0.973,"samples":10000},"world":1,…}
//
// A checkpoint of step s is committed only after every line up to s is on the disk, and a resume from s drops what lies
// beyond s: so no step is missing or twice, whatever was killed when.

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/record/metrics_line.h"

namespace skytrain::record {

class MetricsWriter {
 public:
  // Drops a torn last line, and every line whose step is > resume_step, then appends. Steps never go down in the file,
  // so what is dropped is its end, and one truncation drops it: a crash leaves a prefix of the old file, which the next
  // resume treats in the same way. A file that holds anything else than such lines is not touched: Error(kData) with
  // the line's number. redo_evaluation: the evaluation of resume_step will be done again, so a line of it is dropped
  // too.
  MetricsWriter(FileSystem& fs, const std::string& path, uint64_t resume_step, Clock& clock = Clock::real(),
                bool redo_evaluation = false);
  ~MetricsWriter();  // writes what is buffered

  // Buffered; handed to the file at most once a second, by the time of the calls. A few microseconds. Not thread-safe.
  // A full disk (Error kEnvironment) leaves no torn line in the file, and the lines are kept for the next call.
  void write(const OrderedJson& line);
  // Hands all lines to the operating system.
  void flush();
  // Everything written so far is durable when it returns. May be called by another thread than the rest, and does not
  // hold it up.
  void sync();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All whole lines of the file; a torn last line is ignored, a missing file has none. Error(kData) with the line's
// number when another line is no JSON object.
std::vector<Json> read_metrics(const FileSystem& fs, const std::string& path);

// The same without the trees and without giving up, for readers that make the best of a damaged file.
struct MetricsScan {
  uint64_t lines = 0;             // that were visited
  uint64_t unreadable = 0;        // that were passed over
  uint64_t first_unreadable = 0;  // number of the first such line, counted from 1; 0: none
  bool torn = false;              // the last line has no end: the writer was killed, or is writing
};
MetricsScan scan_metrics(const FileSystem& fs, const std::string& path,
                         const std::function<void(const MetricsLine&)>& visit);

}  // namespace skytrain::record
