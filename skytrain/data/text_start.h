// skytrain/data/text_start.h
//
// How a file of text begins. Thread-safe.

#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "skytrain/base/file_system.h"

namespace skytrain::data {

// The size of the file, > 0. kind: "CSV", "JSONL". Throws Error(kData): there is no such file, or it is empty.
uint64_t text_size(const FileSystem& fs, const std::string& path, std::string_view kind);

// head: of the file, 512 bytes or all of it. Returns the bytes of a byte order mark (UTF-8: 3), or 0. Throws
// Error(kData) when the content is plainly something else (gzip, HTML, UTF-16, …); JSON is taken when kind is "JSONL".
size_t text_start(std::string_view head, const std::string& path, std::string_view kind, const std::string& expected);

}  // namespace skytrain::data
