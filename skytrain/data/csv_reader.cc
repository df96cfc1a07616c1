#include "skytrain/data/csv_reader.h"

#include <algorithm>
#include <utility>

#include "skytrain/base/text.h"
#include "skytrain/data/text_start.h"

namespace skytrain::data {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

CsvReader::CsvReader(const FileSystem& fs, std::string path)
    : fs_(fs), path_(std::move(path)), size_(text_size(fs, path_, "CSV")) {
  fill();
  begin_ = text_start(buffer_, path_, "CSV", "expected lines of values with commas between them");
  skip_comments();
}

// Makes room and reads the next piece behind what is there; false: there is no more.
bool CsvReader::fill() {
  if (at_end()) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (buffer_.size() > kMaxRecord) {
    refuse(line_, 1, str("is a record of more than ", human_bytes(static_cast<double>(kMaxRecord))),
           "look for a quote that is not closed");
  }
  const size_t old = buffer_.size();
  const size_t more = static_cast<size_t>(std::min<uint64_t>(std::max(kChunk, old), size_ - read_));
  buffer_.resize(old + more);
  fs_.read_range(path_, read_, std::as_writable_bytes(std::span(buffer_.data() + old, more)));
  read_ += more;
  return true;
}

void CsvReader::skip_comments() {
  while (begin_ < buffer_.size() && buffer_[begin_] == '#') {
    const size_t end = buffer_.find('\n', begin_);
    if (end == std::string::npos) {
      if (fill()) continue;
      begin_ = buffer_.size();
      return;
    }
    begin_ = end + 1;
    ++line_;
    if (begin_ == buffer_.size()) fill();
  }
}

bool CsvReader::next() {
  for (;;) {
    if (begin_ == buffer_.size() && !fill()) return false;
    if (parse() == Parsed::kNeedsMore) {
      fill();
      continue;
    }
    if (fields_.size() == 1 && fields_[0].text.empty() && !fields_[0].quoted) continue;  // an empty line
    return true;
  }
}

// Reads the record at begin_. The buffer stays as it is until the whole record was seen.
CsvReader::Parsed CsvReader::parse() {
  fields_.clear();
  doubled_.clear();
  size_t at = begin_;
  line_begin_ = begin_;
  record_line_ = current_line_ = line_;
  for (;;) {
    Field field;
    field.line = current_line_;
    field.column = at - line_begin_ + 1;
    size_t first = at;
    while (first < buffer_.size() && is_blank(buffer_[first])) ++first;
    if (first == buffer_.size() && !at_end()) return Parsed::kNeedsMore;
    field.quoted = first < buffer_.size() && buffer_[first] == '"';
    if (field.quoted) {
      at = first;
      if (!parse_quoted(at, field)) return Parsed::kNeedsMore;
    } else if (!parse_plain(at, field)) {
      return Parsed::kNeedsMore;
    }
    fields_.push_back(field);
    if (at < buffer_.size() && buffer_[at] == ',') {
      ++at;
      continue;
    }
    // The end of the line, or of the file.
    if (at < buffer_.size()) {
      if (buffer_[at] == '\r' && at + 1 == buffer_.size() && !at_end()) return Parsed::kNeedsMore;
      if (buffer_[at] == '\r') {
        if (at + 1 < buffer_.size() && buffer_[at + 1] != '\n') {
          refuse(current_line_, at - line_begin_ + 1, "a carriage return stands without a line feed",
                 "save it with line ends of Unix or Windows");
        }
        ++at;
      }
      if (at < buffer_.size()) ++at;
      ++current_line_;
    }
    break;
  }
  for (const size_t index : doubled_) {
    Field& field = fields_[index];
    char* const begin = buffer_.data() + (field.text.data() - buffer_.data());
    char* out = begin;
    for (size_t i = 0; i < field.text.size(); ++i) {
      *out++ = field.text[i];
      if (field.text[i] == '"') ++i;
    }
    field.text = {begin, static_cast<size_t>(out - begin)};
  }
  begin_ = at;
  line_ = current_line_;
  return Parsed::kRecord;
}

// at: of the opening quote, then behind the field. False: its end is not in the buffer yet.
bool CsvReader::parse_quoted(size_t& at, Field& field) {
  const size_t begin = ++at;
  const uint64_t line = field.line, column = begin - line_begin_;
  bool doubled = false;
  for (;; ++at) {
    if (at == buffer_.size()) {
      if (!at_end()) return false;
      refuse(line, column, "the quote is not closed", "write a quote within a field twice");
    }
    const char c = buffer_[at];
    if (c == '\n') {
      ++current_line_;
      line_begin_ = at + 1;
    } else if (c == '"') {
      if (at + 1 == buffer_.size() && !at_end()) return false;
      if (at + 1 == buffer_.size() || buffer_[at + 1] != '"') break;
      doubled = true;
      ++at;
    }
  }
  field.text = std::string_view(buffer_).substr(begin, at - begin);
  if (doubled) doubled_.push_back(fields_.size());
  ++at;
  while (at < buffer_.size() && is_blank(buffer_[at])) ++at;
  if (at == buffer_.size()) return at_end();
  if (buffer_[at] != ',' && buffer_[at] != '\n' && buffer_[at] != '\r') {
    refuse(current_line_, at - line_begin_ + 1, "text follows the closing quote", "write a quote within a field twice");
  }
  return true;
}

bool CsvReader::parse_plain(size_t& at, Field& field) {
  const size_t begin = at;
  for (; at < buffer_.size(); ++at) {
    const char c = buffer_[at];
    if (c > '"' && c != ',') continue;  // most of them
    if (c == ',' || c == '\n' || c == '\r') break;
    if (c == '"') {
      refuse(current_line_, at - line_begin_ + 1, "a quote stands within a field that does not begin with one",
             "put the whole field into quotes, and write the quote within it twice");
    }
    if (c == '\0') refuse(current_line_, at - line_begin_ + 1, "is a NUL byte, so this is no text", "save it as UTF-8");
  }
  if (at == buffer_.size() && !at_end()) return false;
  field.text = trimmed(std::string_view(buffer_).substr(begin, at - begin));
  return true;
}

std::string CsvReader::where(const Field& field) const { return str(path_, ":", field.line, ":", field.column); }
std::string CsvReader::where() const { return str(path_, ":", record_line_); }

void CsvReader::refuse(uint64_t line, uint64_t column, const std::string& what, const std::string& hint) const {
  throw Error(ErrorKind::kData, str(path_, ":", line, ":", column), what, hint);
}

}  // namespace skytrain::data
