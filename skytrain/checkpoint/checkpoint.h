// skytrain/checkpoint/checkpoint.h
//
// A checkpoint is a directory `step-00001234/` with one safetensors file a rank and `manifest.json`, which is written
// last and names size and hash of each file; the rename from `step-00001234.tmp` is the commit. A reader counts only
// what a manifest vouches for. docs/checkpoint-format.md is the specification (version 1).

#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/base/json.h"
#include "skytrain/checkpoint/safetensors.h"

namespace skytrain::checkpoint {

inline constexpr int kFormatVersion = 1;

struct Manifest {
  int version = kFormatVersion;
  uint64_t generation = 0;  // of the membership that wrote it
  uint64_t step = 0;        // committed optimizer steps
  uint64_t samples = 0;     // samples consumed
  int64_t world = 1;
  double created_unix_seconds = 0;
  Json state;  // small state that is no tensor: cursor, schedule, rng, decisions of auto, …
  struct File {
    std::string name;
    uint64_t bytes = 0;
    std::string xxh128;
    std::map<std::string, std::string> tensors;  // xxh128 of each, by name: which of them is damaged; empty: not known
  };
  std::vector<File> files;
};

std::string checkpoint_name(uint64_t step);  // "step-00001234": 8 digits, more when needed

// Writes and commits `directory`/step-…; returns its path. manifest.version and manifest.files are filled in here.
// On failure nothing of it counts, the .tmp is removed where possible, and the error is thrown. (If only the very last
// fsync fails, the checkpoint is there and complete, but may not outlive a power cut.)
// Committing a step that exists already replaces nothing: returns its path after verifying it. One that is damaged is
// replaced; one that cannot be read, is of a later format version or is a good one of another step stays, and Error is
// thrown. One writer a directory: the caller holds the run's lock.
std::string commit(FileSystem& fs, const std::string& directory, Manifest manifest, std::span<const NamedArray> arrays);

// What of it is in the manifest: size and hashes, under the name of the only rank's file.
Manifest::File describe_image(std::span<const std::byte> file);

struct WriteHooks {
  // Told before each piece of a file how many bytes of it have been written. What it throws is the failure of the
  // commit: to give up a save that takes too long.
  std::function<void(uint64_t written)> progress;
  // Told, on another thread while the file is being written, what the manifest will say.
  std::function<void(const Manifest&)> hashed;
};

// The same of a file that is ready in memory (file_image.h); its hash is computed while it is written, in pieces that
// take a fraction of a second each, also on a slow disk.
std::string commit_image(FileSystem& fs, const std::string& directory, Manifest manifest,
                         std::span<const std::byte> file, const WriteHooks& hooks = {});

struct Candidate {
  // Why it does not count. What is only unreadable or too new may be whole: whoever resumes must not pass over it as if
  // it were worthless.
  // kSuperseded: it is whole, but the run went on without it (lineage.h).
  enum class Trouble { kNone, kUncommitted, kMisnamed, kDamaged, kTooNew, kUnreadable, kSuperseded };
  std::string path;
  uint64_t step = 0;
  bool valid = false;
  Trouble trouble = Trouble::kNone;
  std::string reason;  // why not, one clause naming the file: "rank-0-of-1.safetensors is 12 bytes, manifest says 90"
};

// Every folder in `directory` (hidden ones excepted), highest step (by manifest, else by name) first; those whose step
// nobody can tell lead. A folder whose name and manifest disagree, *.tmp, and names that are no checkpoint's are listed
// as invalid with the reason. Empty when there is no `directory`. hash: also read and hash every file.
std::vector<Candidate> list_checkpoints(const FileSystem& fs, const std::string& directory, bool hash);

// The newest checkpoint that verifies (sizes, hashes, header); older ones are not read once one is found. `skipped`
// gets the newer ones passed over.
std::optional<Candidate> find_newest_valid(const FileSystem& fs, const std::string& directory,
                                           std::vector<Candidate>* skipped);

// The same one after reading and hashing every file of it.
Candidate examine_content(const FileSystem& fs, Candidate candidate);

// Throws Error(kData) naming the file: missing, damaged (it carries its own hash), of a later format version, or naming
// files other than rank-<r>-of-<w>.safetensors. Does not look at the checkpoint's name.
Manifest read_manifest(const FileSystem& fs, const std::string& checkpoint_path);

// Replaces the state in a committed checkpoint's manifest, at once or not at all; the arrays stay as they are.
void amend_state(FileSystem& fs, const std::string& checkpoint_path, Json state);

// One tensor file, checked against the manifest (size, hash, header) and mapped into memory. To load a whole checkpoint
// to where its tensors belong, load.h is faster.
class LoadedFile {
 public:
  const SafetensorsHeader& header() const { return header_; }
  // Throws Error(kData) naming file and tensor when it is not there.
  std::span<const std::byte> bytes(const std::string& name) const;

 private:
  friend LoadedFile load_file(const FileSystem&, const std::string&, const Manifest::File&);
  SafetensorsHeader header_;
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::span<const std::byte> content_;  // of file_
};
LoadedFile load_file(const FileSystem& fs, const std::string& checkpoint_path, const Manifest::File& file);

// Which checkpoints stay.
struct Retention {
  int64_t keep = 1;                           // the newest, >= 1
  std::function<bool(uint64_t step)> spared;  // these too; empty: none
  std::string sound;                          // path of one that this program has just committed: not read again
};

// Removes committed checkpoints beyond the `keep` newest *valid-looking* ones (never the newest valid one, which is
// read and hashed for that), superseded ones, and every stale step-*.tmp. Damaged checkpoints and folders with other
// names stay, for a person to look at. Returns the paths that were removed.
std::vector<std::string> prune(FileSystem& fs, const std::string& directory, const Retention& retention);
// What prune() would remove.
std::vector<std::string> to_be_pruned(const FileSystem& fs, const std::string& directory, const Retention& retention);

}  // namespace skytrain::checkpoint
