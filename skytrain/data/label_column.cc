#include "skytrain/data/label_column.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/class_names.h"
#include "skytrain/data/csv_number.h"

namespace skytrain::data {

void LabelColumn::add(std::string_view text, const std::function<std::string()>& where, Written written) {
  if (written_.value_or(written) != written) {
    refuse({.where = where(), .number = {}, .whole = false},
           str("holds ", written == Written::kName ? "the name \"" : "the number \"", printable(text), "\", and ",
               written == Written::kName ? "numbers" : "names", " before"),
           "write all classes as numbers, or all as names");
  }
  written_ = written;
  auto it = ids_.find(text);
  if (it == ids_.end()) {
    Value value{.where = where(), .number = {}, .whole = false};
    if (written != Written::kName) value.number = parse_number(text);
    value.whole = value.number && std::trunc(*value.number) == *value.number;
    if (text.empty() || (written == Written::kEither && is_missing(text))) {
      refuse(value, text.empty() ? "is empty" : str("holds \"", printable(text), "\": a missing value"),
             "give the class, or remove the row");
    }
    if (invalid_utf8_at(text) != std::string::npos) refuse(value, "is not UTF-8", "save the file as UTF-8");
    if (values_.size() == kMostClasses) {
      refuse(value, str("holds more than ", kMostClasses, " different values, which are no classes"),
             "name the column of the class in target");
    }
    it = ids_.emplace(text, static_cast<int32_t>(values_.size())).first;
    values_.push_back(std::move(value));
    texts_.emplace_back(text);
  }
  samples_.push_back(it->second);
}

LabelColumn::Result LabelColumn::finish(const OpenOptions& options) {
  const bool named = options.train != nullptr && !options.train->class_names.empty();
  const auto is_number = [](const Value& value) { return value.number.has_value(); };
  if (!named && std::all_of(values_.begin(), values_.end(), is_number)) return numbers(options);
  return names(options);
}

LabelColumn::Result LabelColumn::numbers(const OpenOptions& options) {
  Result result;
  std::vector<int32_t> labels;
  for (const Value& value : values_) {
    const std::string number = shortest_double(*value.number);
    if (!value.whole) {
      refuse(value, "holds " + number + ", which is no class",
             "classes are whole numbers or names; to predict numbers, use train.loss mse");
    }
    if (*value.number < 0) {
      refuse(value, "holds " + number + ", but classes are counted from 0", "number the classes 0, 1, …, or name them");
    }
    const int64_t limit = options.classes > 0 ? options.classes : static_cast<int64_t>(kMostClasses);
    if (*value.number >= static_cast<double>(limit)) {
      refuse(value, "holds " + number + str(", which is outside [0, ", limit, ")"),
             options.classes > 0 ? str("the model has ", limit, " classes (model.classes)") : "");
    }
    labels.push_back(static_cast<int32_t>(*value.number));
    result.classes = std::max<int64_t>(result.classes, labels.back() + 1);
  }
  for (int32_t& id : samples_) id = labels[static_cast<size_t>(id)];
  result.labels = std::move(samples_);
  return result;
}

LabelColumn::Result LabelColumn::names(const OpenOptions& options) {
  if (options.train != nullptr && options.train->class_names.empty()) {
    const auto other = std::find_if(values_.begin(), values_.end(), [](const Value& v) { return !v.number; });
    refuse(*other, "holds \"" + printable(texts_[static_cast<size_t>(other - values_.begin())]) + "\"",
           "the classes of the training set are numbers");
  }
  Result result;
  std::vector<std::string> known = texts_;
  std::sort(known.begin(), known.end());
  if (options.train != nullptr) known = options.train->class_names;
  const ClassNames classes(std::move(known));
  std::vector<int32_t> labels;
  for (size_t i = 0; i < texts_.size(); ++i) {
    labels.push_back(static_cast<int32_t>(classes.label(texts_[i], values_[i].where)));
  }
  for (int32_t& id : samples_) id = labels[static_cast<size_t>(id)];
  result.labels = std::move(samples_);
  result.class_names = classes.names();
  result.classes = static_cast<int64_t>(result.class_names.size());
  return result;
}

void LabelColumn::refuse(const Value& value, const std::string& what, const std::string& hint) const {
  throw Error(ErrorKind::kData, value.where, str(what_, " ", what), hint);
}

}  // namespace skytrain::data
