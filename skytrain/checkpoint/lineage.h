// skytrain/checkpoint/lineage.h
//
// Which attempt of a run a checkpoint belongs to, and whether it still counts. Each attempt that saves is a generation:
// it goes on from one step of one before it, and says so once, in `generation-<number>.json` beside the checkpoints,
// before its first checkpoint counts. Two attempts that run at the same time (a machine that was thought dead, a shared
// disk without locks) can't both make the same record, so that only one of them goes on.
//
// A checkpoint (generation g, step s) counts only if s <= the start of each later generation: what g trained beyond it
// is not part of the run.

#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"

namespace skytrain::checkpoint {

struct Generation {
  uint64_t number = 0;
  std::optional<uint64_t> parent;  // the one that it goes on from; none: from the beginning
  uint64_t start_step = 0;
  double created_unix_seconds = 0;
  Json members = Json::array();  // who they are: {"host", "pid", …}
};

class Lineage {
 public:
  // Of a folder of checkpoints; one that is not there has none. Throws Error(kData) naming a record that is damaged,
  // Error(kEnvironment) when one can't be read.
  static Lineage read(const FileSystem& fs, const std::string& directory);

  // Why a checkpoint does not count, one clause; "": it does.
  std::string objection(uint64_t generation, uint64_t step) const;
  // The highest number; nullopt: there is no record.
  std::optional<uint64_t> newest() const;
  const std::map<uint64_t, Generation>& generations() const { return generations_; }

 private:
  std::map<uint64_t, Generation> generations_;
};

// Removes records that no checkpoint can need which is of generation `oldest` or a later one.
void prune_generations(FileSystem& fs, const std::string& directory, uint64_t oldest);

// False when somebody else has made a record of that number. When this very record is there (an attempt that failed
// after the rename, or a network file system that did what it was asked and said otherwise) it is made durable.
bool add_generation(FileSystem& fs, const std::string& directory, const Generation& generation);

}  // namespace skytrain::checkpoint
