// skytrain/data/dataset.h
//
// A finite set of labelled images that any thread may read at any index.

#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

struct DatasetInfo {
  uint64_t samples = 0;  // > 0
  int64_t channels = 0, height = 0, width = 0;
  int64_t classes = 0;      // highest label + 1
  std::string format;       // "idx", "synthetic"
  std::string fingerprint;  // xxh128 of the content: equal for equal samples, whatever the packing
  uint64_t bytes_in_memory = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Pixels of sample `index`, uint8, CHW, channels*height*width bytes, valid while the data set lives. Thread-safe.
  // REQUIRES: index < info().samples.
  virtual const uint8_t* pixels(uint64_t index) const = 0;
  virtual int64_t label(uint64_t index) const = 0;
  // Where sample `index` comes from, for messages: "train-images-idx3-ubyte.gz[1234]".
  virtual std::string name(uint64_t index) const = 0;
};

// Opens what `spec` names. seed: of the recipe (synthetic data depends on it); eval: a different draw of synthetic
// data. classes: of the model; a label outside [0, classes) is refused with its index. Throws Error(kData) naming the
// file, Error(kEnvironment) for disk trouble or lack of memory, or Error(kRecipe) for a format or split that does not
// exist and for synthetic data too large to keep.
std::unique_ptr<Dataset> open_dataset(FileSystem& fs, const recipe::DatasetSpec& spec, int64_t classes, uint64_t seed,
                                      bool eval);

// Names of the formats that open_dataset knows.
std::vector<std::string> dataset_formats();

}  // namespace skytrain::data
