// skytrain/record/run_directory.h
//
// runs/<name>/<UTC time>/: everything one run leaves behind. docs/run-directory.md lists the files.
//
//   recipe.yaml       the resolved recipe with the origin of each value      recipe.json  the same for machines
//   run.json          identity: versions, host, devices, data fingerprints, attempts
//   metrics.jsonl     one line a logged step and one an evaluation
//   events.out.tfevents.*                TensorBoard
//   checkpoints/step-00001234/           state
//   evaluation.json   confusion matrix, per-class counts, sample mistakes of the last evaluation
//   summary.json      written once, when the run is complete: the result
//   report.html       self-contained
//   log.txt           what the worker and the front program had to say
//   lock              held (flock) by whoever writes

#pragma once
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/base/process.h"

namespace skytrain::record {

class RunDirectory {
 public:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string recipe_json() const { return file("recipe.json"); }
  std::string recipe_yaml() const { return file("recipe.yaml"); }
  std::string run_json() const { return file("run.json"); }
  std::string metrics() const { return file("metrics.jsonl"); }
  std::string checkpoints() const { return file("checkpoints"); }
  std::string evaluation() const { return file("evaluation.json"); }
  std::string summary() const { return file("summary.json"); }
  std::string report() const { return file("report.html"); }
  std::string log() const { return file("log.txt"); }

  // Creates <runs>/<name>/<UTC now>/ ("-2", "-3" … appended when that second is taken) with recipe.* and run.json.
  static RunDirectory create(FileSystem& fs, const Clock& clock, const std::string& runs, const std::string& name,
                             const std::string& recipe_yaml, const OrderedJson& recipe_json, const OrderedJson& run_json);

 private:
  std::string path_;
};

// What --resume auto looks at.
struct FoundRun {
  RunDirectory directory;
  bool complete = false;      // summary.json is there
  Json run_json;
};
// Runs below <runs>/<name>, newest first. A folder without a readable run.json is passed over, with a note.
std::vector<FoundRun> find_runs(const FileSystem& fs, const std::string& runs, const std::string& name,
                                std::vector<std::string>* notes);

// Exclusive right to write a run, held through flock(2) on <run>/lock, so it ends with the process that holds it.
// The descriptor may be handed to a child. Throws Error(kEnvironment) "is in use by process N" after `wait_seconds`.
Fd lock_run(const RunDirectory& run, double wait_seconds);

}  // namespace skytrain::record
