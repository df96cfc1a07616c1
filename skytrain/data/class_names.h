// skytrain/data/class_names.h
//
// Classes that have names: which label a name stands for, and what is wrong with a name or with their number.
// Immutable, so thread-safe.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

class ClassNames {
 public:
  // names: by label.
  explicit ClassNames(std::vector<std::string> names);
  ClassNames(const ClassNames&) = delete;
  ClassNames& operator=(const ClassNames&) = delete;

  const std::vector<std::string>& names() const { return names_; }
  // Throws Error(kData, where) when the training set has no class of this name.
  int64_t label(const std::string& name, const std::string& where) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, int64_t> labels_;  // views of names_
};

// Compares info.classes with the model's outputs: more is Error(kData, where), fewer a note, since a forgotten
// model.classes does no visible harm.
void check_class_count(DatasetInfo& info, const OpenOptions& options, const std::string& where);

}  // namespace skytrain::data
