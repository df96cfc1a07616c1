// skytrain/data/label_column.h
//
// A column of classes as a table of text has it: whole numbers, which are the labels themselves, or names, which are
// sorted and numbered. Which of the two it is shows when all of it has been read. Not thread-safe.

#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

class LabelColumn {
 public:
  // What a value was written as, where the format tells: a name may look like a number.
  enum class Written { kEither, kNumber, kName };

  // what: of the column, for messages: `column "species"`.
  explicit LabelColumn(std::string what) : what_(std::move(what)) {}

  // The next sample's class; where() tells the place of a value that is seen for the first time. Throws Error(kData):
  // empty, not UTF-8, more different values than any model has classes, numbers and names mixed.
  void add(std::string_view text, const std::function<std::string()>& where, Written written = Written::kEither);

  struct Result {
    std::vector<int32_t> labels;
    std::vector<std::string> class_names;  // by label; empty when they were numbers
    int64_t classes = 0;                   // highest label + 1, or how many names
  };
  // Throws Error(kData) at the first value that is no class: negative, beyond options.classes, a fraction, a name that
  // the training set does not have.
  Result finish(const OpenOptions& options);

  static constexpr size_t kMostClasses = 1'000'000;

 private:
  struct Value {
    std::string where;             // of its first appearance
    std::optional<double> number;  // none: no number
    bool whole = false;            // a number without a fraction
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Result numbers(const OpenOptions& options);
  Result names(const OpenOptions& options);
  [[noreturn]] void refuse(const Value& value, const std::string& what, const std::string& hint) const;

  std::string what_;
  std::optional<Written> written_;  // all values
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<Value> values_;       // by id
  std::vector<std::string> texts_;  // by id
  std::vector<int32_t> samples_;    // ids
};

}  // namespace skytrain::data
