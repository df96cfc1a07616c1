// skytrain/data/cifar10.h
//
// Format "cifar10": the binary version of CIFAR-10 (Krizhevsky 2009), read into memory. A file is a row of records of
// 3,073 bytes: one of the label, 0..9, then 32 x 32 pixels of red, of green and of blue, line by line.

#pragma once
#include <cstdint>
#include <memory>

#include "skytrain/data/memory_dataset.h"

namespace skytrain::data {

class Cifar10Dataset final : public MemoryDataset {
 public:
  // spec.path: the folder of data_batch_1.bin … data_batch_5.bin (split "train") and test_batch.bin ("test"), or the
  // one above it, or one such file. Each may be packed, with .gz after its name; the plain one wins. Of the training
  // files those that are there make the set; a note says when some of the five are missing. Class names are those of
  // batches.meta.txt, where it is there.
  static std::unique_ptr<Cifar10Dataset> open(const FileSystem& fs, const recipe::DatasetSpec& spec,
                                              const OpenOptions& options);

 private:
  using MemoryDataset::MemoryDataset;
};

}  // namespace skytrain::data
