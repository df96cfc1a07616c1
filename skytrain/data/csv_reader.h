// skytrain/data/csv_reader.h
//
// Records of a CSV file as RFC 4180 has them: fields between commas, in quotes where they hold commas, quotes (doubled)
// or line ends; lines end with LF or CRLF. UTF-8, with or without a byte order mark. Beyond the RFC: spaces and tabs
// around a field are not part of it, empty lines don't count, and lines at the beginning that start with '#' are
// comments. The file is read in pieces. Not thread-safe.

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"

namespace skytrain::data {

class CsvReader {
 public:
  struct Field {
    std::string_view text;  // valid until the next call of next()
    uint64_t line = 0;      // where the field begins, from 1
    uint64_t column = 0;    // bytes, from 1
    bool quoted = false;
  };

  // fs must outlive this. Throws Error(kData) when the content is plainly something else (gzip, HTML, UTF-16, …).
  CsvReader(const FileSystem& fs, std::string path);

  // Goes to the next record; false: there is none. Throws Error(kData, "path:line:column", …) for a quote that is not
  // closed, that lies within a field or is followed by text, for a NUL byte, a CR without LF and a record of more than
  // kMaxRecord bytes.
  bool next();
  std::span<const Field> fields() const { return fields_; }

  // "path:line:column" of a field, "path:line" of the record.
  std::string where(const Field& field) const;
  std::string where() const;
  const std::string& path() const { return path_; }

  static constexpr size_t kMaxRecord = size_t{64} << 20;

 private:
  enum class Parsed { kRecord, kNeedsMore };

  Parsed parse();
  bool parse_quoted(size_t& at, Field& field);
  bool parse_plain(size_t& at, Field& field);
  void skip_comments();
  bool fill();
  bool at_end() const { return read_ == size_; }
  [[noreturn]] void refuse(uint64_t line, uint64_t column, const std::string& what, const std::string& hint) const;

  const FileSystem& fs_;
  const std::string path_;
  const uint64_t size_;  // bytes of the file
  uint64_t read_ = 0;    // of these in the buffer by now
  std::string buffer_;
  size_t begin_ = 0;   // in the buffer: of the next record
  uint64_t line_ = 1;  // of begin_
  std::vector<Field> fields_;
  // While a record is parsed: where its current line begins in the buffer, and that line's number.
  size_t line_begin_ = 0;
  uint64_t current_line_ = 1;
  uint64_t record_line_ = 1;
  std::vector<size_t> doubled_;  // fields that hold doubled quotes
};

}  // namespace skytrain::data
