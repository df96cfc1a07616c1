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
#include <memory>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"

namespace skytrain::record {

class MetricsWriter {
 public:
  // Drops a torn last line, and every line whose step is > resume_step, then appends.
  MetricsWriter(FileSystem& fs, const std::string& path, uint64_t resume_step);
  ~MetricsWriter();
  // Buffered; flushed to the file at least each second by time of the calls. Not thread-safe.
  void write(const OrderedJson& line);
  // Everything written so far is durable when it returns.
  void sync();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All whole lines of the file; a torn last line is ignored.
std::vector<Json> read_metrics(const FileSystem& fs, const std::string& path);

}  // namespace skytrain::record
