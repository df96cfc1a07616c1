#include "skytrain/data/mds_sample.h"

namespace skytrain::data {

uint64_t mds_head_bytes(const MdsIndex& index) {
  uint64_t bytes = 0;
  for (const MdsColumn& column : index.columns) bytes += column.size ? 0 : 4;
  return bytes;
}

std::optional<MdsValue> find_mds_value(const MdsIndex& index, size_t column, std::span<const uint8_t> head,
                                       uint64_t sample_bytes) {
  uint64_t at = mds_head_bytes(index);
  size_t read = 0;
  MdsValue found;
  for (size_t c = 0; c < index.columns.size(); ++c) {
    const uint64_t size = index.columns[c].size ? *index.columns[c].size : little_endian(head.subspan(read, 4));
    if (!index.columns[c].size) read += 4;
    if (c == column) found = {at, size};
    at += size;
  }
  return at == sample_bytes ? std::optional(found) : std::nullopt;
}

}  // namespace skytrain::data
