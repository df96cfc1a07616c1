// skytrain/checkpoint/verify.h
//
// Whether a checkpoint is what its manifest says. Reads in pieces; memory does not grow with the checkpoint.

#pragma once
#include <optional>
#include <string>

#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {

enum class Depth {
  kSizes,    // the manifest, and the size of each file
  kContent,  // also each file's hash and safetensors header
};

enum class Verdict { kValid, kDamaged, kTooNew, kUnreadable };

struct Verification {
  Verdict verdict = Verdict::kValid;
  std::string reason;                // one clause naming the file; empty when valid
  std::optional<Manifest> manifest;  // when it could be read, whatever the verdict
};

// Never throws an Error: what cannot be read (permission, I/O) is the verdict kUnreadable.
Verification verify(const FileSystem& fs, const std::string& checkpoint_path, Depth depth);

}  // namespace skytrain::checkpoint
