// A folder of checkpoints: which there are, which one to resume from, which ones to remove.

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/checkpoint/lineage.h"
#include "skytrain/checkpoint/manifest.h"
#include "skytrain/checkpoint/verify.h"

namespace skytrain::checkpoint {
namespace {

struct Entry {
  Candidate candidate;
  bool step_known = false;  // an entry of unknown step might be the newest: it comes first, so that it is spoken of
};

bool is_temporary(const std::string& name) { return name.ends_with(kTemporarySuffix); }

std::string without_suffix(const std::string& name) {
  return name.substr(0, name.size() - (is_temporary(name) ? sizeof(kTemporarySuffix) - 1 : 0));
}

Candidate::Trouble trouble_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kValid:
      return Candidate::Trouble::kNone;
    case Verdict::kDamaged:
      return Candidate::Trouble::kDamaged;
    case Verdict::kTooNew:
      return Candidate::Trouble::kTooNew;
    case Verdict::kUnreadable:
      return Candidate::Trouble::kUnreadable;
  }
  return Candidate::Trouble::kDamaged;
}

Entry examine(const FileSystem& fs, const std::string& directory, const std::string& name, const Lineage& lineage,
              Depth depth) {
  Entry entry;
  Candidate& candidate = entry.candidate;
  candidate.path = directory + "/" + name;
  const std::optional<uint64_t> named = step_from_name(without_suffix(name));
  candidate.step = named.value_or(0);
  entry.step_known = named.has_value();
  const std::optional<FileInfo> info = fs.stat(candidate.path);
  if (is_temporary(name)) {
    candidate.trouble = Candidate::Trouble::kUncommitted;
    candidate.reason = name + " was never committed: it is left from a save that was cut off";
    return entry;
  }
  if (!info || info->type != FileInfo::Type::kDirectory) {
    candidate.trouble = Candidate::Trouble::kMisnamed;
    candidate.reason = name + " is not a folder";
    return entry;
  }
  const Verification found = verify(fs, candidate.path, depth);
  if (found.manifest) {
    candidate.step = found.manifest->step;
    entry.step_known = true;
  }
  candidate.trouble = Candidate::Trouble::kMisnamed;
  if (!named) {
    candidate.reason = name + " is not a checkpoint's name (step-<number>)";
  } else if (found.manifest && found.manifest->step != *named) {
    candidate.reason =
        str(name, " is named for step ", *named, ", but its manifest.json says step ", found.manifest->step);
  } else if (found.verdict != Verdict::kValid) {
    candidate.trouble = trouble_of(found.verdict);
    candidate.reason = found.reason;
  } else if (std::string why = lineage.objection(found.manifest->generation, *named); !why.empty()) {
    candidate.trouble = Candidate::Trouble::kSuperseded;
    candidate.reason = name + " " + why;
  } else {
    candidate.trouble = Candidate::Trouble::kNone;
    candidate.valid = true;
  }
  return entry;
}

// Highest step first.
std::vector<Candidate> examine_all(const FileSystem& fs, const std::string& directory, Depth depth) {
  std::vector<Entry> entries;
  if (!fs.exists(directory)) return {};
  const Lineage lineage = Lineage::read(fs, directory);
  for (const std::string& name : fs.list(directory)) {
    if (name.starts_with('.')) continue;
    const std::optional<FileInfo> info = fs.stat(directory + "/" + name);
    const bool folder = info && info->type == FileInfo::Type::kDirectory;
    if (folder || step_from_name(without_suffix(name))) entries.push_back(examine(fs, directory, name, lineage, depth));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.step_known != b.step_known) return !a.step_known;
    if (a.candidate.step != b.candidate.step) return a.candidate.step > b.candidate.step;
    return !a.candidate.valid && b.candidate.valid;
  });
  std::vector<Candidate> candidates;
  for (Entry& entry : entries) candidates.push_back(std::move(entry.candidate));
  return candidates;
}

// Looks at the content of a candidate whose sizes are right.
void deepen(const FileSystem& fs, Candidate& candidate) {
  if (!candidate.valid) return;
  const Verification found = verify(fs, candidate.path, Depth::kContent);
  candidate.valid = found.verdict == Verdict::kValid;
  candidate.trouble = trouble_of(found.verdict);
  candidate.reason = found.reason;
}

// A run that is stopped and resumed a thousand times is not to leave a thousand records.
void prune_lineage(FileSystem& fs, const std::string& directory) {
  std::optional<uint64_t> oldest;
  if (!fs.exists(directory)) return;
  for (const std::string& name : fs.list(directory)) {
    if (!step_from_name(without_suffix(name))) continue;
    const Verification found = verify(fs, directory + "/" + name, Depth::kSizes);
    if (!found.manifest) return;  // whose it is can't be told
    oldest = std::min(oldest.value_or(found.manifest->generation), found.manifest->generation);
  }
  if (oldest) prune_generations(fs, directory, *oldest);
}

}  // namespace

std::vector<Candidate> list_checkpoints(const FileSystem& fs, const std::string& directory, bool hash) {
  return examine_all(fs, directory, hash ? Depth::kContent : Depth::kSizes);
}

std::optional<Candidate> find_newest_valid(const FileSystem& fs, const std::string& directory,
                                           std::vector<Candidate>* skipped) {
  for (Candidate& candidate : examine_all(fs, directory, Depth::kSizes)) {
    deepen(fs, candidate);
    if (candidate.valid) return candidate;
    if (skipped != nullptr) skipped->push_back(candidate);
  }
  return std::nullopt;
}

Candidate examine_content(const FileSystem& fs, Candidate candidate) {
  deepen(fs, candidate);
  return candidate;
}

std::vector<std::string> to_be_pruned(const FileSystem& fs, const std::string& directory, const Retention& retention) {
  const int64_t keep = retention.keep;
  if (keep < 1) throw Error(ErrorKind::kInternal, directory, str("asked to keep ", keep, " checkpoints"));
  std::vector<std::string> doomed;
  if (!fs.exists(directory)) return doomed;
  for (const std::string& name : fs.list(directory)) {
    if (is_temporary(name) && step_from_name(without_suffix(name))) doomed.push_back(directory + "/" + name);
  }
  std::vector<Candidate> valid_looking;
  std::vector<std::string> superseded;
  for (Candidate& candidate : examine_all(fs, directory, Depth::kSizes)) {
    if (candidate.trouble == Candidate::Trouble::kSuperseded) superseded.push_back(candidate.path);
    if (candidate.valid) valid_looking.push_back(std::move(candidate));
  }
  // Right sizes don't make a checkpoint: nothing goes before a newer one was read and found sound.
  bool sound = false;
  for (size_t i = 0; i < valid_looking.size(); ++i) {
    Candidate& candidate = valid_looking[i];
    if (!sound) {
      if (candidate.path != retention.sound) deepen(fs, candidate);
      sound = candidate.valid;
      continue;
    }
    if (i < static_cast<size_t>(keep) || (retention.spared && retention.spared(candidate.step))) continue;
    doomed.push_back(candidate.path);
  }
  if (sound) doomed.insert(doomed.end(), superseded.begin(), superseded.end());
  return doomed;
}

std::vector<std::string> prune(FileSystem& fs, const std::string& directory, const Retention& retention) {
  const std::vector<std::string> doomed = to_be_pruned(fs, directory, retention);
  for (const std::string& path : doomed) {
    if (is_temporary(path)) {
      fs.remove_tree(path);
      continue;
    }
    // Renamed first, so that a removal that is cut off leaves no half checkpoint under a checkpoint's name.
    fs.rename(path, path + kTemporarySuffix);
    fs.remove_tree(path + kTemporarySuffix);
  }
  prune_lineage(fs, directory);
  return doomed;
}

}  // namespace skytrain::checkpoint
