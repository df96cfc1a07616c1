// skytrain/data/raw_as_png.h
//
// A data set of raw pixels (idx, cifar10) as one of encoded pictures: each sample as a PNG file, without loss. A grey
// one is a grey PNG, which is read as three equal channels.

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skytrain/data/encoded_pictures.h"

namespace skytrain::data {

// Whether a set's samples are pixels of 1 or 3 channels, and no files of pictures.
bool has_raw_pictures(const Dataset& dataset);

// Of one sample. REQUIRES has_raw_pictures(). Thread-safe for different scratches.
std::string sample_as_png(const Dataset& dataset, uint64_t index, Scratch& scratch);

class RawAsPng final : public EncodedPictures {
 public:
  // Encodes all samples, several at once, and keeps them in memory. source must outlive this. stop: true ends it with
  // Error(kInterrupted). threads: 0: as many as there are cores. REQUIRES has_raw_pictures(source).
  RawAsPng(const Dataset& source, int threads, const std::function<bool()>& stop);

  const DatasetInfo& info() const override { return info_; }
  std::span<const uint8_t> encoded(uint64_t index, Scratch& scratch) const override;
  uint64_t encoded_bytes(uint64_t index) const override { return files_[index].size(); }
  int64_t label(uint64_t index) const override { return source_.label(index); }
  std::string name(uint64_t index) const override { return source_.name(index); }

 private:
  const Dataset& source_;
  DatasetInfo info_;  // that of the source, with three channels
  std::vector<std::string> files_;
};

}  // namespace skytrain::data
