// skytrain/data/jsonl.h
//
// Format "jsonl": a file of one JSON object a line (jsonl_reader.h), whose keys the recipe names. With spec.image it
// lists files of pictures, without it holds rows of numbers.

#pragma once
#include <memory>

#include "skytrain/data/dataset.h"

namespace skytrain::data {

std::unique_ptr<Dataset> open_jsonl(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options);

}  // namespace skytrain::data
