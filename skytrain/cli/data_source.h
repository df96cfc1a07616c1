// skytrain/cli/data_source.h
//
// The data set that a verb of `skytrain data` is given by its path: its format is guessed unless it is named.

#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "skytrain/data/dataset.h"

namespace skytrain::cli {

struct DataFlags {
  std::string path;
  std::string format = "auto";
  std::vector<std::string> target;  // of csv and jsonl
  std::string image;                // of jsonl; "": rows of numbers
  bool exif_orientation = false;    // turn pictures upright
};

// PATH, --format (by that name unless another is given), --target, --image.
void add_data_flags(CLI::App& app, DataFlags& flags, const char* format_flag = "--format");

// --exif-orientation, for verbs that look at pixels.
void add_exif_flag(CLI::App& app, DataFlags& flags);

// Opens what flags name, one split after the other, with their names ("train", "test"; "all" where there are none), and
// gives each to `use`. Pictures have `size` pixels a side. options: of all formats but csv. Returns the format. Throws
// Error(kUsage) for a format or target that does not fit, and what data::open_dataset() throws.
std::string for_each_split(const DataFlags& flags, int64_t size,
                           const std::function<void(const std::string& split, const data::Dataset& dataset)>& use,
                           const data::OpenOptions& options = {});

}  // namespace skytrain::cli
