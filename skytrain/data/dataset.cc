#include "skytrain/data/dataset.h"

#include <string>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/idx.h"
#include "skytrain/data/synthetic.h"

namespace skytrain::data {
namespace {

struct Request {
  FileSystem& fs;
  const recipe::DatasetSpec& spec;
  int64_t classes;
  uint64_t seed;
  bool eval;
};

struct Format {
  std::string_view name;
  std::unique_ptr<Dataset> (*open)(const Request&);
};

// A new format is its own file and one line here.
constexpr Format kFormats[] = {
    {"idx", [](const Request& r) -> std::unique_ptr<Dataset> { return IdxDataset::open(r.fs, r.spec, r.classes); }},
    {"synthetic",
     [](const Request& r) -> std::unique_ptr<Dataset> {
       return SyntheticDataset::make(r.spec, r.classes, r.seed, r.eval);
     }},
};

}  // namespace

std::vector<std::string> dataset_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::unique_ptr<Dataset> open_dataset(FileSystem& fs, const recipe::DatasetSpec& spec, int64_t classes, uint64_t seed,
                                      bool eval) {
  for (const Format& format : kFormats) {
    if (format.name == spec.format) return format.open(Request{fs, spec, classes, seed, eval});
  }
  throw Error(ErrorKind::kRecipe, eval ? "data.eval.format" : "data.train.format",
              str("unknown format \"", printable(spec.format), "\"", did_you_mean(spec.format, dataset_formats())),
              "known: " + join(dataset_formats(), ", "));
}

}  // namespace skytrain::data
