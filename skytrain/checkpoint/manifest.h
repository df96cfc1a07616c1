// skytrain/checkpoint/manifest.h
//
// manifest.json as text, and the names of checkpoints and their files (docs/checkpoint-format.md). Pure functions.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kTemporarySuffix[] = ".tmp";

// "step-00001234" -> 1234; nullopt when the name is no checkpoint's. Any number of digits is understood.
std::optional<uint64_t> step_from_name(std::string_view name);

// "generation-00000002.json" <-> 2.
std::string generation_file_name(uint64_t number);
std::optional<uint64_t> generation_from_name(std::string_view name);

std::string rank_file_name(uint64_t rank, uint64_t of);  // "rank-0-of-1.safetensors"

// The manifest was written by a later version of the format: the checkpoint is not damaged, only out of reach.
class TooNew : public Error {
 public:
  using Error::Error;
};

// Throws Error(kInternal) for a manifest that parse_manifest would refuse.
std::string format_manifest(const Manifest& manifest);
// Throws Error(kData, where, …), TooNew.
Manifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace skytrain::checkpoint
