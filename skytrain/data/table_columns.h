// skytrain/data/table_columns.h
//
// What the recipe and the training set say of a table's columns, whatever text it is written in. All functions are
// thread-safe. word: what the format calls a column: "column", "key".

#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

// "data.train.target" or "data.eval.target".
std::string target_key(const OpenOptions& options);

// Throws Error(kRecipe) when spec.target names a column that is not there, or one twice. before_names: "its columns: ".
void check_targets(const std::vector<std::string>& names, const recipe::DatasetSpec& spec, const OpenOptions& options,
                   std::string_view word, const std::string& before_names);

// Whether the target is a class: for TargetKind::kClass, and also for kValues when the model has several outputs and
// one column of single values is named; else it is values. values: how many a row has. single: one column that holds no
// array. Throws Error(kRecipe) when they do not fit the loss or the model.
bool target_is_class(const recipe::DatasetSpec& spec, const OpenOptions& options, size_t values, bool single,
                     std::string_view word);

// Of each of an evaluation set's features, the place that it has in the training set. Throws Error(kData, where) when
// the two do not have the same.
std::vector<size_t> places_in_training(const std::vector<std::string>& own, const std::vector<std::string>& training,
                                       const std::string& where, std::string_view word);

}  // namespace skytrain::data
