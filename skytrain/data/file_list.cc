#include "skytrain/data/file_list.h"

namespace skytrain::data {

void FileList::add(std::string_view name, uint64_t size) {
  names_ += name;
  ends_.push_back(names_.size());
  sizes_.push_back(size);
}

uint64_t FileList::bytes_in_memory() const { return names_.capacity() + 8 * (ends_.capacity() + sizes_.capacity()); }

std::span<const uint8_t> FileList::read(const FileSystem& fs, const std::string& folder, uint64_t i,
                                        image::Scratch& scratch) const {
  scratch.path.assign(folder).append("/").append(name(i));
  const size_t bytes = size(i);
  const std::span<uint8_t> content(scratch.encoded.room(bytes, scratch.path), bytes);
  fs.read_range(scratch.path, 0, std::as_writable_bytes(content));
  return content;
}

}  // namespace skytrain::data
