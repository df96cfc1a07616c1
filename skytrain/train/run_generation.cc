#include "skytrain/train/run_generation.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/machine.h"
#include "skytrain/base/text.h"

namespace skytrain::train {

RunGeneration::RunGeneration(FileSystem& fs, Clock& clock, std::string directory)
    : fs_(fs), clock_(clock), directory_(std::move(directory)) {}

void RunGeneration::begin(uint64_t number) {
  known_ = true;
  own_.number = number;
  own_.created_unix_seconds = clock_.unix_seconds();
  own_.members = Json::array({{{"rank", 0}, {"host", host_name()}, {"pid", ::getpid()}}});
}

void RunGeneration::goes_on_from(const checkpoint::Manifest& manifest) {
  if (known_) return;
  const std::optional<uint64_t> newest = checkpoint::Lineage::read(fs_, directory_).newest();
  begin(std::max(newest.value_or(0), manifest.generation) + 1);
  own_.parent = manifest.generation;
  own_.start_step = manifest.step;
}

void RunGeneration::starts_anew() {
  if (known_) return;
  const std::optional<uint64_t> newest = checkpoint::Lineage::read(fs_, directory_).newest();
  begin(newest ? *newest + 1 : 0);
}

void RunGeneration::enter() {
  if (!entered_) {
    fs_.make_directories(directory_);
    entered_ = checkpoint::add_generation(fs_, directory_, own_);
  }
  if (entered_ && checkpoint::Lineage::read(fs_, directory_).newest() == own_.number) return;
  superseded(str("this one is generation ", own_.number, " and no longer the newest"));
}

void RunGeneration::require_counts(const checkpoint::Manifest& manifest) const {
  const std::string why = checkpoint::Lineage::read(fs_, directory_).objection(manifest.generation, manifest.step);
  if (!why.empty()) superseded("the last state here " + why);
}

void RunGeneration::superseded(const std::string& why) const {
  throw Error(ErrorKind::kLostWorkers, directory_, "another attempt has gone on with this run: " + why,
              "only one of them may save: this one ends");
}

}  // namespace skytrain::train
