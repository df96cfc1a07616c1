// skytrain/checkpoint/load.h
//
// Loading a checkpoint in a single pass: bytes go from the file to where they belong while the file's hash is computed.
// So memory may be written to by a checkpoint that turns out to be damaged in the end.

#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skytrain/checkpoint/checkpoint.h"

namespace skytrain::checkpoint {

struct Destination {
  std::span<std::byte> bytes;  // as many as the tensor has
  // Called in the loading thread when they are there, and not yet known to be sound; may be empty.
  std::function<void()> done = {};
};

// A tensor file of a checkpoint whose manifest and header hold, and whose size is right. The content is not known yet.
struct TensorFile {
  const std::string& checkpoint_path;
  const std::string& path;
  const Manifest& manifest;
  const SafetensorsHeader& header;
};

// Says where the tensors of a file go, by name. Those without a destination are only hashed. What it throws is thrown
// by the functions below if the checkpoint is a sound one; if it is damaged, that is what counts.
using Place = std::function<std::map<std::string, Destination>(const TensorFile& file)>;

// Throws Error(kData) when the checkpoint is damaged or missing, Error(kEnvironment) when it can't be read, TooNew.
Manifest load(const FileSystem& fs, const std::string& checkpoint_path, const Place& place);

struct Loaded {
  std::string path;
  Manifest manifest;
};

// Loads the newest checkpoint that verifies, as find_newest_valid() would find it; nullopt when there is none.
// `skipped` gets the newer ones that were passed over; damaged ones have been written to destinations perhaps, and what
// is loaded then is written over that. Ends without loading at one that is of a later format or can't be read: it may
// be whole, and then is the last of `skipped`.
std::optional<Loaded> load_newest_valid(const FileSystem& fs, const std::string& directory, const Place& place,
                                        std::vector<Candidate>* skipped);

}  // namespace skytrain::checkpoint
