// skytrain/checkpoint/copy.h
//
// A checkpoint to another folder, on any disk.

#pragma once
#include <functional>
#include <string>

#include "skytrain/base/file_system.h"

namespace skytrain::checkpoint {

// Copies the checkpoint at `from` into `directory`, under its name, and commits it as a writer does; what is read is
// compared with the manifest's hashes on the way, so that no damage is copied. Returns its path. One that is there
// already and equal stays. stop: polled; true ends with Error(kInterrupted). Throws Error(kData) when the source is
// damaged or the name is taken by another one, Error(kEnvironment) for disk trouble: nothing counts then.
std::string copy(FileSystem& fs, const std::string& from, const std::string& directory,
                 const std::function<bool()>& stop);

}  // namespace skytrain::checkpoint
