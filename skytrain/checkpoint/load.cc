#include "skytrain/checkpoint/load.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/hash.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/scatter_read.h"
#include "skytrain/checkpoint/verify.h"

namespace skytrain::checkpoint {
namespace {

constexpr char kNotTheSameTwice[] =
    "its files did not match their hashes when they were loaded, and did when they were read again: the disk or the "
    "memory of this machine is at fault";

// A tensor's place in a file and in memory.
struct Target {
  Stretch stretch;
  std::function<void()> done;
};

// In the order of the file.
std::vector<Target> targets_of(const SafetensorsHeader& header, const std::string& path,
                               std::map<std::string, Destination> destinations) {
  std::vector<Target> targets;
  for (auto& [name, destination] : destinations) {
    const ArrayInfo& info = array_of(header, name, path);
    if (destination.bytes.size() != info.end - info.begin) {
      throw Error(ErrorKind::kInternal, path,
                  str("tensor \"", printable(name), "\" has ", info.end - info.begin, " bytes, its destination ",
                      destination.bytes.size()));
    }
    targets.push_back({{info.begin, info.end, destination.bytes.data()}, std::move(destination.done)});
  }
  std::sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return std::pair(a.stretch.begin, a.stretch.end) < std::pair(b.stretch.begin, b.stretch.end);
  });
  return targets;
}

// False: the file is not what the manifest says, or can't be read. `refused` gets what `place` throws.
bool load_one(const FileSystem& fs, const std::string& checkpoint_path, const Manifest& manifest,
              const Manifest::File& entry, const Place& place, std::exception_ptr& refused) {
  const std::string path = checkpoint_path + "/" + entry.name;
  try {
    const std::optional<FileInfo> info = fs.stat(path);
    if (!info || info->type != FileInfo::Type::kFile) return false;
    const auto file = fs.open_read(path);
    if (file->size() != entry.bytes) return false;
    const std::string head = read_safetensors_head(*file, path);
    const SafetensorsHeader header = parse_safetensors_header(head, entry.bytes, path);
    std::vector<Target> targets;
    try {
      targets = targets_of(header, path, place({checkpoint_path, path, manifest, header}));
    } catch (const Error&) {
      refused = std::current_exception();
      return false;
    }
    std::vector<Stretch> stretches;
    for (const Target& target : targets) {
      if (target.stretch.begin < target.stretch.end) stretches.push_back(target.stretch);
    }
    Xxh128 hash;
    hash.update(std::as_bytes(std::span(head)));
    auto target = targets.begin();
    const auto finish_up_to = [&](uint64_t offset) {
      for (; target != targets.end() && target->stretch.end <= offset; ++target) {
        if (target->done) target->done();
      }
    };
    scatter_read(*file, head.size(), entry.bytes, stretches, [&](uint64_t offset, std::span<const std::byte> bytes) {
      hash.update(bytes);
      finish_up_to(offset + bytes.size());
    });
    finish_up_to(entry.bytes);
    return hash.hex() == entry.xxh128;
  } catch (const Error&) {
    return false;
  }
}

// False: whoever calls finds out why.
bool load_files(const FileSystem& fs, const std::string& path, const Manifest& manifest, const Place& place,
                std::exception_ptr& refused) {
  return std::all_of(manifest.files.begin(), manifest.files.end(),
                     [&](const Manifest::File& file) { return load_one(fs, path, manifest, file, place, refused); });
}

}  // namespace

Manifest load(const FileSystem& fs, const std::string& checkpoint_path, const Place& place) {
  Manifest manifest = read_manifest(fs, checkpoint_path);
  std::exception_ptr refused;
  if (load_files(fs, checkpoint_path, manifest, place, refused)) return manifest;
  const Verification found = verify(fs, checkpoint_path, Depth::kContent);
  if (found.verdict == Verdict::kValid && refused) std::rethrow_exception(refused);
  throw Error(found.verdict == Verdict::kDamaged ? ErrorKind::kData : ErrorKind::kEnvironment, checkpoint_path,
              found.verdict == Verdict::kValid ? kNotTheSameTwice : found.reason);
}

std::optional<Loaded> load_newest_valid(const FileSystem& fs, const std::string& directory, const Place& place,
                                        std::vector<Candidate>* skipped) {
  using Trouble = Candidate::Trouble;
  for (Candidate& candidate : list_checkpoints(fs, directory, /*hash=*/false)) {
    if (candidate.valid) {
      std::exception_ptr refused;
      Loaded loaded{candidate.path, {}};
      try {
        loaded.manifest = read_manifest(fs, candidate.path);
        if (load_files(fs, candidate.path, loaded.manifest, place, refused)) return loaded;
      } catch (const Error&) {  // the manifest was whole a moment ago: it is examined again
      }
      candidate = examine_content(fs, candidate);
      if (candidate.valid && refused) std::rethrow_exception(refused);
      if (candidate.valid) {
        candidate.valid = false;
        candidate.trouble = Trouble::kUnreadable;
        candidate.reason = kNotTheSameTwice;
      }
    }
    if (skipped != nullptr) skipped->push_back(candidate);
    if (candidate.trouble == Trouble::kTooNew || candidate.trouble == Trouble::kUnreadable) break;
  }
  return std::nullopt;
}

}  // namespace skytrain::checkpoint
