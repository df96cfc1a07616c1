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
//   summary.json      the result, or how far it came
//   report.html       self-contained
//   log.txt           what the worker and the front program had to say
//   lock              held (flock) by whoever writes

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  std::string lock() const { return file("lock"); }

  // Takes a run's lock, or whatever keeps others from a new run.
  using Claim = std::function<void(const RunDirectory&)>;
  // Creates <runs>/<name>/<UTC now>/ ("-2", "-3" … appended when that second is taken) with recipe.* and run.json.
  // run.json is written last: a folder that has one is whole, and only then others find it. `claim` is called before,
  // so that no other process can be faster to take the new run. Processes may create runs of one name at the same time.
  static RunDirectory create(FileSystem& fs, const Clock& clock, const std::string& runs, const std::string& name,
                             const std::string& recipe_yaml, const OrderedJson& recipe_json,
                             const OrderedJson& run_json, const Claim& claim = nullptr);

 private:
  std::string path_;
};

// Adds an entry to `attempts` of run.json, which is replaced atomically. Call with the run's lock held.
void add_attempt(FileSystem& fs, const RunDirectory& run, const OrderedJson& attempt);

// What --resume auto looks at: runs below <runs>/<name>, newest first, by the time and number in the folder's name. A
// folder without a readable run.json, or not named by a time (a copy, a run kept by hand), is passed over, with a note.
std::vector<RunDirectory> find_runs(const FileSystem& fs, const std::string& runs, const std::string& name,
                                    std::vector<std::string>* notes);

// Exclusive right to write a run, held through flock(2) on <run>/lock, so it ends with the process that holds it.
// The descriptor may be handed to a child. Throws Error(kEnvironment) "is in use by process N" after `wait_seconds`.
// On the real disk only.
// With a folder or file system that can't be locked it fails with the same kind, at once.
Fd lock_run(const RunDirectory& run, double wait_seconds, Clock& clock = Clock::real());
// The same without waiting; nullopt while another process holds the lock, then *in_use says "is in use by process N".
std::optional<Fd> try_lock_run(const RunDirectory& run, std::string* in_use = nullptr);

}  // namespace skytrain::record
