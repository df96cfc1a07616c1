#include "skytrain/data/jsonl_reader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "skytrain/base/json.h"
#include "skytrain/base/text.h"
#include "skytrain/data/text_start.h"

namespace skytrain::data {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr std::string_view kBlank = " \t\r";
constexpr const char* kExpected = "each line is one JSON object: {\"key\": value, …}";

// Over the line's characters; how far reading has come is seen from outside.
struct Cursor {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** reached = nullptr;

  const char& operator*() const { return *at; }
  Cursor& operator++() {
    *reached = ++at;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

}  // namespace

// Takes what nlohmann-json's parser finds, one call a token. It is not recursive, so depth costs no stack.
class JsonlReader::Parser {
 public:
  Parser(JsonlReader& reader, std::string_view line) : reader_(reader), line_(line), reached_(line.data()) {}

  void run() {
    const Cursor begin{.at = line_.data(), .reached = &reached_};
    const Cursor end{.at = line_.data() + line_.size(), .reached = nullptr};
    Json::sax_parse(begin, end, this);
  }

  bool null() { return other("null: a missing value"); }
  bool boolean(bool value) { return other(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(std::string& value) {
    if (depth_ != 1) return other("text");
    field().kind = Kind::kText;
    std::swap(field().text, value);
    return true;
  }
  bool binary(Json::binary_t&) { return other("binary data"); }  // not of JSON

  bool start_object(std::size_t) {
    if (depth_ > 0) other("an object");
    ++depth_;
    return true;
  }
  bool key(std::string& key) {
    if (depth_ != 1) return true;
    std::vector<Field>& fields = reader_.fields_;
    if (reader_.used_ == kMaxFields) {
      reader_.refuse(column(), str("has more than ", kMaxFields, " keys"), "write what belongs together as an array");
    }
    if (reader_.used_ == fields.size()) fields.emplace_back();
    Field& field = fields[reader_.used_++];
    if (field.key != key) {
      reader_.distinct_ = 0;
      field.key = key;
    }
    field.kind = Kind::kOther;
    field.text.clear();
    field.first = reader_.numbers_.size();
    field.count = 0;
    place(field);
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 1) field().kind = Kind::kNumbers;
    if (depth_ > 1) other("an array");
    if (depth_ == 0) return other("");
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }

  // position: how many characters were read.
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    const size_t last = std::min(std::max<size_t>(position, 1), line_.size()) - 1;
    const std::string_view rest = line_.substr(last);
    const bool word = rest.starts_with("NaN") || rest.starts_with("Inf");
    if (word) refuse_number(std::string(rest.substr(0, rest.find_first_not_of("NaInfinity"))), last + 1);
    if (error.id == 406) refuse_number("a number that is too large", last + 1);  // out_of_range
    reader_.refuse(last + 1, "not valid JSON: " + json_reason(error), kExpected);
  }

 private:
  Field& field() { return reader_.fields_[reader_.used_ - 1]; }
  uint64_t column() const { return static_cast<uint64_t>(reached_ - line_.data()); }

  bool number(double value) {
    if (depth_ == 0) return other("");
    Field& field = this->field();
    if (depth_ == 1) field.kind = Kind::kNumber;
    if (depth_ > 2 || field.kind == Kind::kOther) return true;  // within something else
    reader_.numbers_.push_back(value);
    ++field.count;
    return true;
  }

  // What is no number. Within an array of the record it makes that something else.
  bool other(const char* what) {
    if (depth_ == 0) {
      const size_t begin = line_.find_first_not_of(kBlank);
      reader_.refuse(begin + 1, "is no JSON object",
                     line_[begin] == '[' ? str(kExpected, "; write an array of them as lines, without its brackets")
                                         : std::string(kExpected));
    }
    Field& field = this->field();
    if (depth_ > 1 && field.kind != Kind::kNumbers) return true;
    if (depth_ == 1) {
      field.text = what;
    } else {
      field.text = str("an array with ", what, " at place ", field.count);
    }
    field.kind = Kind::kOther;
    return true;
  }

  [[noreturn]] void refuse_number(const std::string& what, uint64_t column) {
    const std::string where = reader_.used_ > 0 ? str("key \"", printable(field().key), "\" holds ") : "holds ";
    reader_.refuse(column, where + what, "numbers are finite, as JSON has them");
  }

  // The parser has read the key's closing quote, and no more.
  void place(Field& field) {
    const size_t end = static_cast<size_t>(reached_ - line_.data());
    size_t begin = end - 1;  // of the closing quote
    for (bool quoted = true; quoted && begin > 0;) {
      begin = line_.rfind('"', begin - 1);
      size_t before = begin;
      while (before > 0 && line_[before - 1] == '\\') --before;
      quoted = (begin - before) % 2 == 1;
    }
    field.key_at = begin + 1;
    const size_t colon = line_.find_first_not_of(" \t\r:", end);
    field.value_at = std::min(colon, line_.size()) + 1;
  }

  JsonlReader& reader_;
  const std::string_view line_;
  const char* reached_;
  int depth_ = 0;  // of the objects and arrays that are open
};

JsonlReader::JsonlReader(const FileSystem& fs, std::string path)
    : fs_(fs), path_(std::move(path)), size_(text_size(fs, path_, "JSONL")) {
  fill();
  begin_ = text_start(buffer_, path_, "JSONL", kExpected);
}

// Makes room and reads the next piece behind what is there; false: there is no more.
bool JsonlReader::fill() {
  if (read_ == size_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t old = buffer_.size();
  const size_t more = static_cast<size_t>(std::min<uint64_t>(std::max(kChunk, old), size_ - read_));
  buffer_.resize(old + more);
  fs_.read_range(path_, read_, std::as_writable_bytes(std::span(buffer_.data() + old, more)));
  read_ += more;
  return true;
}

bool JsonlReader::next_line(std::string_view& line) {
  size_t looked_at = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', looked_at);
    if (end == std::string::npos && buffer_.size() - begin_ <= kMaxLine) {
      const size_t seen = buffer_.size() - begin_;
      if (fill()) {
        looked_at = begin_ + seen;
        continue;
      }
      if (begin_ == buffer_.size()) return false;
    }
    const size_t stop = std::min(end, buffer_.size());
    ++line_number_;
    if (stop - begin_ > kMaxLine) {
      refuse(1, str("is a line of more than ", human_bytes(static_cast<double>(kMaxLine))), kExpected);
    }
    line = std::string_view(buffer_).substr(begin_, stop - begin_);
    begin_ = end == std::string::npos ? stop : end + 1;
    return true;
  }
}

bool JsonlReader::next() {
  std::string_view line;
  while (next_line(line)) {
    if (line.find_first_not_of(kBlank) == std::string_view::npos) continue;
    parse(line);
    return true;
  }
  used_ = 0;
  return false;
}

void JsonlReader::parse(std::string_view line) {
  used_ = 0;
  numbers_.clear();
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos) {  // where the parser would end
    refuse(nul + 1, "is a NUL byte, so this is no text", "save it as UTF-8");
  }
  Parser(*this, line).run();
  if (used_ > distinct_) refuse_duplicates();
}

// Not called when the keys are those of the record before.
void JsonlReader::refuse_duplicates() {
  seen_.clear();
  for (const Field& field : fields()) {
    if (seen_.insert(field.key).second) continue;
    refuse(field.key_at, str("key \"", printable(field.key), "\" is there twice"), "write each key once");
  }
  seen_.clear();
  distinct_ = used_;
}

std::vector<std::string> JsonlReader::keys() const {
  std::vector<std::string> keys;
  for (const Field& field : fields()) keys.push_back(field.key);
  return keys;
}

const JsonlReader::Field* JsonlReader::find(std::string_view key, size_t& guess) const {
  if (guess < used_ && fields_[guess].key == key) return &fields_[guess];
  const auto found = std::find_if(fields_.begin(), fields_.begin() + static_cast<ptrdiff_t>(used_),
                                  [&](const Field& field) { return field.key == key; });
  guess = static_cast<size_t>(found - fields_.begin());
  return guess == used_ ? nullptr : &*found;
}

std::string JsonlReader::where(const Field& field) const { return str(path_, ":", line_number_, ":", field.value_at); }
std::string JsonlReader::where() const { return str(path_, ":", line_number_); }

void JsonlReader::refuse(uint64_t column, const std::string& what, const std::string& hint) const {
  throw Error(ErrorKind::kData, str(path_, ":", line_number_, ":", column), what, hint);
}

}  // namespace skytrain::data
