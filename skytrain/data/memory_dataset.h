// skytrain/data/memory_dataset.h
//
// A data set that is held in memory as one block of pixels: what small formats are read into. Immutable once made, so
// any thread may read it.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/allocate.h"
#include "skytrain/data/dataset.h"

namespace skytrain::data {

// Pixels of all samples, uint8, NCHW: `block` owns them, they start `offset` bytes into it (after a file's header).
struct PixelBlock {
  std::unique_ptr<uint8_t[]> block;
  size_t offset = 0, size = 0;
  std::span<const uint8_t> span() const { return {block.get() + offset, size}; }
};

// Which samples came from one file: name() gives "<name>[<index in it>]".
struct Source {
  std::string name;
  uint64_t samples = 0;
};

class MemoryDataset : public Dataset {
 public:
  // Checks that the parts fit together; completes info (classes, fingerprint, bytes_in_memory). sources: in the order
  // of the samples.
  MemoryDataset(DatasetInfo info, PixelBlock pixels, std::vector<int32_t> labels, std::vector<Source> sources);

  const DatasetInfo& info() const final { return info_; }
  const uint8_t* pixels(uint64_t index, Scratch&) const final {
    return pixels_.block.get() + pixels_.offset + index * stride_;
  }
  int64_t label(uint64_t index) const final { return labels_[index]; }
  std::string name(uint64_t index) const final;

 private:
  DatasetInfo info_;
  PixelBlock pixels_;
  std::vector<int32_t> labels_;
  std::vector<Source> sources_;
  size_t stride_ = 0;  // bytes of one sample
};

}  // namespace skytrain::data
