// skytrain/data/dataset.h
//
// A finite set of samples, each with its target, that any thread may read at any index. A sample is a picture of 8-bit
// pixels or a row of float features; its target is a class or a few float values.

#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/image/scratch.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

using image::Scratch;

enum class Elements { kUint8, kFloat32 };

struct DatasetInfo {
  uint64_t samples = 0;  // > 0
  Elements elements = Elements::kUint8;
  int64_t channels = 0, height = 0, width = 0;  // of features: channels is their number, height and width are 1
  // Highest label + 1, or size of class_names; OpenOptions::classes, where labels are read with the samples. 0: the
  // target is values, or nobody wanted classes to be counted.
  int64_t classes = 0;
  int64_t values = 0;                      // float values of a sample's target; 0: the target is a class
  std::vector<std::string> class_names;    // by label; empty: the format names none
  std::vector<std::string> feature_names;  // by channel; empty: the format names none
  std::string format;       // "idx", "cifar10", "imagefolder", "webdataset", "mds", "csv", "jsonl", "synthetic"
  std::string fingerprint;  // 32 hex digits that tell one content from another (docs/data.md)
  uint64_t bytes_in_memory = 0;
  std::vector<std::string> notes;  // what people should know: files passed over, classes without samples; one line each
};

// What checksums that a set carries say of its files.
struct FileCheck {
  uint64_t files = 0;                // compared
  std::vector<std::string> damage;   // of those that differ: file and how, in order
  std::vector<std::string> unknown;  // kinds of checksums that are not known here ("sha1")
};

class EncodedPictures;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;

  // All of these are thread-safe (for different scratches) and REQUIRE index < info().samples. Calling one that does
  // not fit info().elements or info().values is a bug: Error(kInternal).

  // Of Elements::kUint8: the pixels, CHW, channels*height*width bytes, in the data set's memory or in `scratch`: valid
  // until scratch is used again. Throws Error(kData) naming the file when the sample turns out to be damaged, and
  // Error(kEnvironment) for disk trouble or lack of memory.
  virtual const uint8_t* pixels(uint64_t index, Scratch& scratch) const;
  // Of Elements::kFloat32: channels*height*width floats, finite, valid while the data set lives.
  virtual const float* features(uint64_t index) const;

  // Of a target that is a class: [0, info().classes), where classes were counted.
  virtual int64_t label(uint64_t index) const;
  // Of a target that is values: info().values floats, finite, valid while the data set lives.
  virtual const float* values(uint64_t index) const;

  // This set, where its samples are files of pictures; nullptr: they are not.
  virtual const EncodedPictures* encoded_pictures() const { return nullptr; }

  // Reads whole files that the set has checksums of, several at once. Throws Error(kEnvironment) for disk trouble.
  virtual FileCheck check_files() const { return {}; }

  // Where sample `index` comes from, for messages: "train-images-idx3-ubyte.gz[1234]", "cat/17.jpg", "table.csv[17]".
  virtual std::string name(uint64_t index) const = 0;
};

// What the loss compares the model's outputs with.
enum class TargetKind {
  kClass,   // a class a sample
  kValues,  // values a sample, where the format has them; sets of classes stay so, and the caller makes them one-hot
};

// What a run expects of a data set.
struct OpenOptions {
  int64_t classes = 0;  // outputs of the model: labels must be below it, values must be as many; 0: anything goes
  TargetKind target = TargetKind::kClass;
  uint64_t seed = 0;  // of the recipe: synthetic data depends on it
  bool eval = false;  // the evaluation set: a different draw of synthetic data; errors say data.eval
  // With classes == 0: DatasetInfo::classes is to be right, though a large set must be read for it. false: labels are
  // any numbers from 0.
  bool count_classes = true;
  // The evaluation set of a run: info of its training set. Classes and features that have names are matched by name, so
  // that labels and channels mean the same in both. nullptr: the set stands alone. Looked at while opening only.
  const DatasetInfo* train = nullptr;
};

// Opens what `spec` names. fs must outlive the data set, which may read samples from it later. Throws Error(kData)
// naming the file (and sample or line), Error(kEnvironment) for disk trouble or lack of memory, or Error(kRecipe) for a
// format, split or column that does not exist, for targets that don't fit the model's outputs, and for synthetic data
// too large to keep.
std::unique_ptr<Dataset> open_dataset(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                      const OpenOptions& options);

// Names of the formats that open_dataset knows.
std::vector<std::string> dataset_formats();

}  // namespace skytrain::data
