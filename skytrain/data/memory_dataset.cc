#include "skytrain/data/memory_dataset.h"

#include <algorithm>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/data/fingerprint.h"

namespace skytrain::data {

MemoryDataset::MemoryDataset(DatasetInfo info, PixelBlock pixels, std::vector<int32_t> labels,
                             std::vector<Source> sources)
    : info_(std::move(info)), pixels_(std::move(pixels)), labels_(std::move(labels)), sources_(std::move(sources)) {
  stride_ = static_cast<size_t>(info_.channels * info_.height * info_.width);
  if (info_.samples == 0 || stride_ == 0 || labels_.size() != info_.samples ||
      pixels_.size != info_.samples * stride_ || sources_.empty()) {
    throw Error(ErrorKind::kInternal, info_.format, "pixels, labels and dimensions of the data set disagree");
  }
  info_.classes = std::max<int64_t>(int64_t{*std::max_element(labels_.begin(), labels_.end())} + 1,
                                    static_cast<int64_t>(info_.class_names.size()));
  info_.bytes_in_memory = pixels_.offset + pixels_.size + labels_.size() * sizeof(labels_[0]);
  info_.fingerprint = fingerprint(info_.samples, info_.channels, info_.height, info_.width, pixels_.span(), labels_);
}

std::string MemoryDataset::name(uint64_t index) const {
  size_t s = 0;
  for (; s + 1 < sources_.size() && index >= sources_[s].samples; ++s) index -= sources_[s].samples;
  return str(sources_[s].name, "[", index, "]");
}

}  // namespace skytrain::data
