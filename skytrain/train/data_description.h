// skytrain/train/data_description.h
//
// What a checkpoint remembers of the data that it was trained on, so that a model can be evaluated and exported where
// the training data are not.

#pragma once
#include <string>

#include "skytrain/base/json.h"
#include "skytrain/data/dataset.h"

namespace skytrain::train {

// Shape, kind of target, and what classes and features are called.
Json describe_data(const data::DatasetInfo& info);

// The fields of it; the others are empty. Throws Error(kData, where) when it is not as describe_data wrote it.
data::DatasetInfo described_data(const Json& json, const std::string& where);

}  // namespace skytrain::train
