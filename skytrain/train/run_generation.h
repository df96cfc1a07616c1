// skytrain/train/run_generation.h
//
// This process in the lineage of its run (checkpoint/lineage.h): which generation its checkpoints are of, and whether
// it still is the one that goes on.

#pragma once
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/lineage.h"

namespace skytrain::train {

class RunGeneration {
 public:
  // directory: of the checkpoints. Both others outlive this object.
  RunGeneration(FileSystem& fs, Clock& clock, std::string directory);

  // It goes on from this state, or (without one) from the beginning. What is said first holds.
  void goes_on_from(const checkpoint::Manifest& manifest);
  void starts_anew();
  // REQUIRES: one of both was said.
  uint64_t number() const { return own_.number; }

  // To be called before each checkpoint counts: makes the record of this generation, once, and looks whether it is
  // still the newest. Throws Error(kLostWorkers) when another attempt has gone on with the run, and what
  // add_generation() throws.
  void enter();
  // Throws Error(kLostWorkers) when the run has gone on without this state.
  void require_counts(const checkpoint::Manifest& manifest) const;

 private:
  void begin(uint64_t number);
  [[noreturn]] void superseded(const std::string& why) const;

  FileSystem& fs_;
  Clock& clock_;
  const std::string directory_;
  checkpoint::Generation own_;
  bool known_ = false, entered_ = false;
};

}  // namespace skytrain::train
