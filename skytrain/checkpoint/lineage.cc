#include "skytrain/checkpoint/lineage.h"

#include <unistd.h>

#include <random>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/manifest.h"

namespace skytrain::checkpoint {
namespace {

constexpr char kFormat[] = "skytrain-generation";
constexpr int kVersion = 1;

Generation parse(const std::string& text, const std::string& path, uint64_t number) {
  const Json json = parse_json(text, path);
  const auto refuse = [&](const char* what) -> Generation {
    throw Error(ErrorKind::kData, path, what,
                "it tells which checkpoints count: put the right file back, or move it away if they all do");
  };
  try {
    if (!json.is_object() || json.value("format", "") != kFormat) return refuse("is no record of a generation");
    if (json.at("version") != kVersion) return refuse("is of a later version of the format");
    Generation generation;
    generation.number = json.at("generation");
    if (!json.at("parent").is_null()) generation.parent = json.at("parent").get<uint64_t>();
    generation.start_step = json.at("start_step");
    generation.created_unix_seconds = json.at("created_unix_seconds");
    generation.members = json.at("members");
    if (generation.number != number) return refuse("is named for another generation");
    return generation;
  } catch (const Json::exception&) {
    return refuse("is damaged: a field is missing or of another type");
  }
}

}  // namespace

Lineage Lineage::read(const FileSystem& fs, const std::string& directory) {
  Lineage lineage;
  if (!fs.exists(directory)) return lineage;
  for (const std::string& name : fs.list(directory)) {
    if (const std::optional<uint64_t> number = generation_from_name(name)) {
      const std::string path = directory + "/" + name;
      lineage.generations_[*number] = parse(fs.read_file(path), path, *number);
    }
  }
  return lineage;
}

std::string Lineage::objection(uint64_t generation, uint64_t step) const {
  for (auto it = generations_.upper_bound(generation); it != generations_.end(); ++it) {
    if (step > it->second.start_step)
      return str("is of generation ", generation, " of the run, and generation ", it->first, " went on from step ",
                 it->second.start_step, " without it");
  }
  return "";
}

std::optional<uint64_t> Lineage::newest() const {
  if (generations_.empty()) return std::nullopt;
  return generations_.rbegin()->first;
}

void prune_generations(FileSystem& fs, const std::string& directory, uint64_t oldest) {
  const std::optional<uint64_t> newest = Lineage::read(fs, directory).newest();
  for (const std::string& name : fs.list(directory)) {
    const std::optional<uint64_t> number = generation_from_name(name);
    if (name.starts_with("generation-") && name.ends_with(kTemporarySuffix)) fs.remove_file(directory + "/" + name);
    if (number && *number <= oldest && number != newest) fs.remove_file(directory + "/" + name);
  }
}

bool add_generation(FileSystem& fs, const std::string& directory, const Generation& generation) {
  const OrderedJson json = {{"format", kFormat},
                            {"version", kVersion},
                            {"generation", generation.number},
                            {"parent", generation.parent ? OrderedJson(*generation.parent) : OrderedJson()},
                            {"start_step", generation.start_step},
                            {"created_unix_seconds", generation.created_unix_seconds},
                            {"members", generation.members}};
  const std::string path = directory + "/" + generation_file_name(generation.number);
  // A name of its own, as another attempt may be doing the same, in another container with the same process number.
  std::random_device random;
  const std::string temporary = str(path, ".", host_name(), ".", ::getpid(), ".", random(), kTemporarySuffix);
  const auto file = fs.open_write(temporary, FileSystem::Mode::kExclusive);
  file->append(json.dump(1) + "\n");
  file->sync();
  file->close();
  bool own = fs.rename_if_absent(temporary, path);
  if (!own) {
    fs.remove_file(temporary);
    const Generation there = parse(fs.read_file(path), path, generation.number);
    own = there.start_step == generation.start_step && there.members == generation.members &&
          there.created_unix_seconds == generation.created_unix_seconds;
  }
  fs.sync_directory(directory);
  return own;
}

}  // namespace skytrain::checkpoint
