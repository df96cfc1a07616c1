// skytrain/data/dataset_test_data.h
//
// For tests: files in a file system, and reading of samples.

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/data/dataset.h"

namespace skytrain::data {

inline void put_file(FileSystem& fs, const std::string& path, std::string_view content) {
  fs.make_directories(path.substr(0, path.rfind('/')));
  const auto file = fs.open_write(path, FileSystem::Mode::kTruncate);
  file->append(content);
  file->close();
}

// Of a set that lies in memory.
inline const uint8_t* pixels_of(const Dataset& set, uint64_t index) {
  Scratch unused;
  return set.pixels(index, unused);
}

inline std::vector<uint8_t> copy_of_pixels(const Dataset& set, uint64_t index) {
  Scratch scratch;
  const uint8_t* pixels = set.pixels(index, scratch);
  return {pixels, pixels + set.info().channels * set.info().height * set.info().width};
}

}  // namespace skytrain::data
