// skytrain/weights/read_bytes.h
//
// read_weights of bytes that are in memory already: for it, and for fuzzing.

#pragma once
#include <string>

#include "skytrain/weights/file_bytes.h"
#include "skytrain/weights/weights.h"

namespace skytrain::weights {

Weights read_bytes(FileBytes file, const std::string& path);

}  // namespace skytrain::weights
