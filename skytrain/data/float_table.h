// skytrain/data/float_table.h
//
// Rows of floats in blocks, so that a table grows without being copied. Not thread-safe while it grows.

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace skytrain::data {

class FloatTable {
 public:
  // columns > 0. where: for Error(kEnvironment) about lack of memory.
  FloatTable(size_t columns, std::string where);
  float* add_row();
  const float* row(uint64_t index) const { return blocks_[index / block_rows_].get() + index % block_rows_ * columns_; }
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return rows_ * columns_ * sizeof(float); }

 private:
  size_t columns_, block_rows_;
  uint64_t rows_ = 0;
  std::string where_;
  std::vector<std::unique_ptr<float[]>> blocks_;
};

}  // namespace skytrain::data
