// skytrain/data/idx.h
//
// Format "idx": the files of MNIST and its kin (Fashion-MNIST, KMNIST, QMNIST), 8-bit greyscale, read into memory.

#pragma once
#include <cstdint>
#include <memory>

#include "skytrain/base/file_system.h"
#include "skytrain/data/memory_dataset.h"
#include "skytrain/recipe/recipe.h"

namespace skytrain::data {

class IdxDataset final : public MemoryDataset {
 public:
  // spec.path: a folder with {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with .gz (plain wins);
  // spec.split ("train", "test") says which pair. Labels must be in [0, classes); 0: any will do.
  static std::unique_ptr<IdxDataset> open(const FileSystem& fs, const recipe::DatasetSpec& spec, int64_t classes);

 private:
  using MemoryDataset::MemoryDataset;
};

}  // namespace skytrain::data
