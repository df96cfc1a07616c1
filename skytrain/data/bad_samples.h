// skytrain/data/bad_samples.h
//
// Samples of a data set that could not be used, and how many of them are tolerated. Thread-safe.

#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/json.h"

namespace skytrain::data {

class BadSamples {
 public:
  // budget: data.skip_bad_samples; 0: none.
  explicit BadSamples(uint64_t budget) : budget_(budget) {}

  // Sample `index` failed with `error`, which the catch block that calls this handles. Returns where the sample can be
  // left out, and throws where it can't: `error` again when it is not about the sample (Error(kEnvironment), …), or an
  // Error(kData) that says so when it is one more than the budget. A sample counts once.
  void add(uint64_t index, const Error& error);

  uint64_t count() const;
  // "name: problem" of those that were not there at the last call, in the order in which they were met.
  std::vector<std::string> take_new();

  // [[index, "name", "problem"], …] by index.
  Json to_json() const;
  // Throws Json::exception when it is not as to_json() wrote it.
  void from_json(const Json& json);

 private:
  struct Bad {
    std::string name, problem;
  };

  const uint64_t budget_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Bad> bad_;
  std::vector<std::string> new_;
};

}  // namespace skytrain::data
