#include "skytrain/data/class_names.h"

#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/folder_text.h"

namespace skytrain::data {

ClassNames::ClassNames(std::vector<std::string> names) : names_(std::move(names)) {
  for (size_t i = 0; i < names_.size(); ++i) labels_.emplace(names_[i], static_cast<int64_t>(i));
}

int64_t ClassNames::label(const std::string& name, const std::string& where) const {
  const auto it = labels_.find(name);
  if (it != labels_.end()) return it->second;
  throw Error(ErrorKind::kData, where,
              str("the training set has no class \"", printable(name), "\"", did_you_mean(name, names_)),
              "its classes: " + first_names(names_));
}

void check_class_count(DatasetInfo& info, const OpenOptions& options, const std::string& where) {
  if (options.classes == 0 || info.classes == options.classes) return;
  const std::string what =
      str("has ", info.classes, info.classes == 1 ? " class (" : " classes (", first_names(info.class_names),
          "), the model has ", options.classes, options.classes == 1 ? " output" : " outputs");
  const std::string hint = info.classes == 1 ? "there is nothing to tell apart: has the path one folder too many?"
                                             : str("set model.classes to ", info.classes);
  if (info.classes > options.classes) throw Error(ErrorKind::kData, where, what, hint);
  if (options.train == nullptr) info.notes.push_back(where + ": " + what + ": " + hint);
}

}  // namespace skytrain::data
