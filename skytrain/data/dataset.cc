#include "skytrain/data/dataset.h"

#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/cifar10.h"
#include "skytrain/data/csv.h"
#include "skytrain/data/guess_format.h"
#include "skytrain/data/idx.h"
#include "skytrain/data/image_folder.h"
#include "skytrain/data/jsonl.h"
#include "skytrain/data/mds.h"
#include "skytrain/data/synthetic.h"
#include "skytrain/data/webdataset.h"

namespace skytrain::data {
namespace {

struct Request {
  const FileSystem& fs;
  const recipe::DatasetSpec& spec;
  const OpenOptions& options;
};

struct Format {
  std::string_view name;
  std::unique_ptr<Dataset> (*open)(const Request&);
};

// A new format is its own file and one line here.
constexpr Format kFormats[] = {
    {"idx",
     [](const Request& r) -> std::unique_ptr<Dataset> { return IdxDataset::open(r.fs, r.spec, r.options.classes); }},
    {"cifar10",
     [](const Request& r) -> std::unique_ptr<Dataset> { return Cifar10Dataset::open(r.fs, r.spec, r.options); }},
    {"imagefolder",
     [](const Request& r) -> std::unique_ptr<Dataset> { return ImageFolder::open(r.fs, r.spec, r.options); }},
    {"webdataset",
     [](const Request& r) -> std::unique_ptr<Dataset> { return Webdataset::open(r.fs, r.spec, r.options); }},
    {"mds", [](const Request& r) -> std::unique_ptr<Dataset> { return Mds::open(r.fs, r.spec, r.options); }},
    {"csv", [](const Request& r) -> std::unique_ptr<Dataset> { return CsvDataset::open(r.fs, r.spec, r.options); }},
    {"jsonl", [](const Request& r) -> std::unique_ptr<Dataset> { return open_jsonl(r.fs, r.spec, r.options); }},
    {"synthetic",
     [](const Request& r) -> std::unique_ptr<Dataset> {
       return SyntheticDataset::make(r.spec, r.options.classes, r.options.seed, r.options.eval);
     }},
};

[[noreturn]] void has_none(const Dataset& dataset, const char* what) {
  throw Error(ErrorKind::kInternal, dataset.info().format, str("a sample of this data set has no ", what));
}

}  // namespace

const uint8_t* Dataset::pixels(uint64_t, Scratch&) const { has_none(*this, "pixels"); }
const float* Dataset::features(uint64_t) const { has_none(*this, "features"); }
int64_t Dataset::label(uint64_t) const { has_none(*this, "class"); }
const float* Dataset::values(uint64_t) const { has_none(*this, "values"); }

std::vector<std::string> dataset_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::unique_ptr<Dataset> open_dataset(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                      const OpenOptions& options) {
  for (const Format& format : kFormats) {
    if (format.name != spec.format) continue;
    try {
      return format.open(Request{fs, spec, options});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData || spec.path.empty()) throw;
      const std::string other = guess_format(fs, spec.path);
      if (other.empty() || other == spec.format) throw;
      throw Error(error.kind(), error.where(), error.problem(),
                  str(error.hint(), error.hint().empty() ? "" : "\n", "what is there looks like format ", other));
    }
  }
  throw Error(ErrorKind::kRecipe, options.eval ? "data.eval.format" : "data.train.format",
              str("unknown format \"", printable(spec.format), "\"", did_you_mean(spec.format, dataset_formats())),
              "known: " + join(dataset_formats(), ", "));
}

}  // namespace skytrain::data
