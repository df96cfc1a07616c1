#include "skytrain/data/jsonl.h"

#include "skytrain/data/jsonl_pictures.h"
#include "skytrain/data/jsonl_rows.h"

namespace skytrain::data {

std::unique_ptr<Dataset> open_jsonl(const FileSystem& fs, const recipe::DatasetSpec& spec, const OpenOptions& options) {
  if (spec.image) return JsonlPictures::open(fs, spec, options);
  return JsonlRows::open(fs, spec, options);
}

}  // namespace skytrain::data
