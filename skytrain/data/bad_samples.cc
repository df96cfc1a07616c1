#include "skytrain/data/bad_samples.h"

#include <utility>

#include "skytrain/base/text.h"

namespace skytrain::data {

void BadSamples::add(uint64_t index, const Error& error) {
  if (error.kind() != ErrorKind::kData) throw;
  const std::lock_guard lock(mutex_);
  if (bad_.contains(index)) return;
  if (bad_.size() >= budget_) {
    if (budget_ == 0) {
      throw Error(error.kind(), error.where(), error.problem(),
                  str(error.hint(), error.hint().empty() ? "" : "\n",
                      "to leave such samples out, set data.skip_bad_samples to the number that you can do without"));
    }
    throw Error(error.kind(), error.where(), error.problem(),
                str("it is one more than the ", budget_, " that data.skip_bad_samples allows"));
  }
  bad_.emplace(index, Bad{error.where(), error.problem()});
  new_.push_back(error.where() + ": " + error.problem());
}

uint64_t BadSamples::count() const {
  const std::lock_guard lock(mutex_);
  return bad_.size();
}

std::vector<std::string> BadSamples::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

Json BadSamples::to_json() const {
  const std::lock_guard lock(mutex_);
  Json json = Json::array();
  for (const auto& [index, bad] : bad_) json.push_back({index, bad.name, bad.problem});
  return json;
}

void BadSamples::from_json(const Json& json) {
  const std::lock_guard lock(mutex_);
  bad_.clear();
  for (const Json& bad : json) bad_.emplace(bad.at(0), Bad{bad.at(1), bad.at(2)});
}

}  // namespace skytrain::data
