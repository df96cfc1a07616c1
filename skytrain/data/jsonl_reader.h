// skytrain/data/jsonl_reader.h
//
// Records of a JSONL file (https://jsonlines.org, also called NDJSON): one JSON object a line, UTF-8, with or without a
// byte order mark; lines end with LF or CRLF, and those that hold only white space don't count. The file is read in
// pieces. Not thread-safe.

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "skytrain/base/error.h"
#include "skytrain/base/file_system.h"

namespace skytrain::data {

class JsonlReader {
 public:
  enum class Kind {
    kNumber,
    kText,
    kNumbers,  // an array of numbers, perhaps of none
    kOther,    // null, true, false, an object, or an array that holds something else than numbers
  };
  // A member of the record's object; what is in it is valid until the next call of next().
  struct Field {
    std::string key;
    Kind kind = Kind::kOther;
    std::string text;                   // of kText; of kOther: what it is, in words ("null, a missing value")
    size_t first = 0, count = 0;        // of numbers(): kNumber, kNumbers
    uint64_t key_at = 0, value_at = 0;  // columns, bytes from 1
  };

  // fs must outlive this. Throws Error(kData) when the content is plainly something else (gzip, HTML, UTF-16, …).
  JsonlReader(const FileSystem& fs, std::string path);

  // Goes to the next record; false: there is none. Throws Error(kData, "path:line:column", …) for a line that is no
  // JSON object, NaN and infinity, a number too large for float64, a key that is there twice, more than kMaxFields
  // members, and a line of more than kMaxLine bytes.
  bool next();
  std::span<const Field> fields() const { return std::span(fields_).first(used_); }
  std::span<const double> numbers(const Field& field) const {
    return std::span(numbers_).subspan(field.first, field.count);
  }
  std::vector<std::string> keys() const;

  // The member of this key; nullptr: there is none. guess: where it may stand, index of fields(); becomes its index.
  const Field* find(std::string_view key, size_t& guess) const;

  // "path:line:column" of a field's value, "path:line" of the record.
  std::string where(const Field& field) const;
  std::string where() const;
  const std::string& path() const { return path_; }

  static constexpr size_t kMaxLine = size_t{64} << 20;
  static constexpr size_t kMaxFields = 65536;

 private:
  class Parser;

  bool next_line(std::string_view& line);
  bool fill();
  void parse(std::string_view line);
  void refuse_duplicates();
  [[noreturn]] void refuse(uint64_t column, const std::string& what, const std::string& hint) const;

  const FileSystem& fs_;
  const std::string path_;
  const uint64_t size_;  // bytes of the file
  uint64_t read_ = 0;    // of these in the buffer by now
  std::string buffer_;
  size_t begin_ = 0;           // in the buffer: of the next line
  uint64_t line_number_ = 0;   // of the record
  std::vector<Field> fields_;  // kept from record to record with their memory
  size_t used_ = 0;            // of fields_
  size_t distinct_ = 0;        // of fields_, from the first on: they have keys that differ
  std::vector<double> numbers_;
  std::unordered_set<std::string_view> seen_;
};

}  // namespace skytrain::data
