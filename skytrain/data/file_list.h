// skytrain/data/file_list.h
//
// Files of a folder, each one a sample: their names and sizes in few blocks of memory, since a million strings of their
// own would cost twice that. Reading is thread-safe once all were added.

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/image/scratch.h"

namespace skytrain::data {

class FileList {
 public:
  void add(std::string_view name, uint64_t size);

  uint64_t files() const { return sizes_.size(); }
  // Of file i: relative to the folder; in bytes.
  std::string_view name(uint64_t i) const { return std::string_view(names_).substr(ends_[i], ends_[i + 1] - ends_[i]); }
  uint64_t size(uint64_t i) const { return sizes_[i]; }
  uint64_t bytes_in_memory() const;

  // The file's content, in scratch.encoded, and its path in scratch.path. Throws as FileSystem::read_range() does.
  std::span<const uint8_t> read(const FileSystem& fs, const std::string& folder, uint64_t i,
                                image::Scratch& scratch) const;

 private:
  std::string names_;
  std::vector<uint64_t> ends_{0};
  std::vector<uint64_t> sizes_;
};

}  // namespace skytrain::data
