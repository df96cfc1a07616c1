#include "skytrain/data/table_columns.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"

namespace skytrain::data {
namespace {

std::string counted(size_t count, std::string_view word) { return str(count, " ", word, count == 1 ? "" : "s"); }

}  // namespace

std::string target_key(const OpenOptions& options) { return options.eval ? "data.eval.target" : "data.train.target"; }

void check_targets(const std::vector<std::string>& names, const recipe::DatasetSpec& spec, const OpenOptions& options,
                   std::string_view word, const std::string& before_names) {
  for (const std::string& target : spec.target) {
    if (std::find(names.begin(), names.end(), target) == names.end()) {
      throw Error(ErrorKind::kRecipe, target_key(options),
                  str(spec.path, " has no ", word, " \"", printable(target), "\"", did_you_mean(target, names)),
                  before_names + first_names(names));
    }
    if (std::count(spec.target.begin(), spec.target.end(), target) > 1) {
      throw Error(ErrorKind::kRecipe, target_key(options), str("names ", word, " \"", printable(target), "\" twice"));
    }
  }
}

bool target_is_class(const recipe::DatasetSpec& spec, const OpenOptions& options, size_t values, bool single,
                     std::string_view word) {
  const std::string where = target_key(options);
  if (spec.target.empty()) {
    throw Error(ErrorKind::kRecipe, where, "is empty", str("name the ", word, " of the class or of the value"));
  }
  const std::string names = spec.target.size() == values ? "names " + counted(values, word)
                                                         : "names " + counted(values, "value") + " of a row";
  if (options.target == TargetKind::kClass) {
    if (single) return true;
    throw Error(ErrorKind::kRecipe, where, names + ", but cross_entropy takes one: the class",
                str("name one ", word, ", or set train.loss to mse or bce"));
  }
  if (single && options.classes > 1) return true;
  if (options.classes > 0 && static_cast<size_t>(options.classes) != values) {
    throw Error(ErrorKind::kRecipe, where,
                str(names, ", but the model has ", counted(static_cast<size_t>(options.classes), "output")),
                str("set model.classes to ", values));
  }
  return false;
}

std::vector<size_t> places_in_training(const std::vector<std::string>& own, const std::vector<std::string>& training,
                                       const std::string& where, std::string_view word) {
  const std::unordered_set<std::string_view> present(own.begin(), own.end());
  std::unordered_map<std::string_view, size_t> places;
  for (const std::string& name : training) {
    places.emplace(name, places.size());
    if (present.count(name) > 0) continue;
    throw Error(ErrorKind::kData, where,
                str("has no ", word, " \"", printable(name), "\", which the training set has", did_you_mean(name, own)),
                str("its ", word, "s: ", first_names(own)));
  }
  std::vector<size_t> found;
  for (const std::string& name : own) {
    const auto place = places.find(name);
    if (place == places.end()) {
      throw Error(ErrorKind::kData, where,
                  str("has a ", word, " \"", printable(name), "\", which the training set does not have"),
                  "remove it, or add it to the training set");
    }
    found.push_back(place->second);
  }
  return found;
}

}  // namespace skytrain::data
