#include "skytrain/data/float_table.h"

#include <algorithm>
#include <new>
#include <utility>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::data {
namespace {

constexpr size_t kBlockFloats = size_t{1} << 20;

}  // namespace

FloatTable::FloatTable(size_t columns, std::string where)
    : columns_(columns), block_rows_(std::max<size_t>(1, kBlockFloats / columns)), where_(std::move(where)) {}

float* FloatTable::add_row() {
  if (rows_ == blocks_.size() * block_rows_) {
    std::unique_ptr<float[]> block(new (std::nothrow) float[block_rows_ * columns_]);
    if (!block) {
      throw Error(ErrorKind::kEnvironment, where_,
                  str("needs more than ", human_bytes(static_cast<double>(bytes())), " of memory"),
                  "use a machine with more memory, or a smaller data set");
    }
    blocks_.push_back(std::move(block));
  }
  return blocks_.back().get() + rows_++ % block_rows_ * columns_;
}

}  // namespace skytrain::data
