#include "skytrain/data/byte_source.h"

#include <algorithm>

namespace skytrain::data {
namespace {

constexpr size_t kSmallest = size_t{4} << 10, kLargest = size_t{256} << 10;

}  // namespace

std::span<const uint8_t> FileSource::bytes(uint64_t offset, size_t count) {
  if (offset < begin_ || offset + count > begin_ + window_.size()) {
    const uint64_t end = begin_ + window_.size();
    ahead_ = offset >= begin_ && offset <= end ? std::min(std::max(ahead_, kSmallest) * 2, kLargest) : kSmallest;
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(std::max(ahead_, count), size_ - offset));
    window_.resize(wanted);
    begin_ = offset;
    read_(offset, std::as_writable_bytes(std::span(window_)));
  }
  return std::span<const uint8_t>(window_).subspan(static_cast<size_t>(offset - begin_), count);
}

}  // namespace skytrain::data
