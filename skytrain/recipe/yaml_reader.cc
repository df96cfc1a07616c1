// YAML by yaml-cpp's event parser, which gives a position for every event and no tree of its own to be flooded.

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <set>
#include <sstream>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/recipe/value.h"

namespace skytrain::recipe {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxValues = 10000;  // with aliases written out
constexpr size_t kMaxBytes = 4 << 20;

// Stands in a comment after the text. yaml-cpp 0.7 takes the end of the file for the end of a quoted scalar; then this
// character, which no recipe may have, is in the scalar.
constexpr char kEndMark = '\x02';

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Place& start, const Sources& sources) : start_(start), sources_(sources) {}

  Value take() { return std::move(root_); }
  Place place_of(const YAML::Mark& mark) const {
    Place place = start_;
    if (place.source == Place::Source::kFile && !mark.is_null()) {
      place.line = mark.line + 1;
      place.column = mark.column + 1;
    }
    return place;
  }
  [[noreturn]] void refuse(const Place& place, const std::string& what, const std::string& hint = {}) const {
    throw Error(ErrorKind::kRecipe, sources_.describe(place), what, hint);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Value{.place = place_of(mark)}, anchor); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) refuse(place_of(mark), "this alias is part of what it stands for");
    count(it->second, place_of(mark));  // before the copy
    add(it->second, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    if (text.find(kEndMark) != text.npos) refuse(place_of(mark), "the quote that opens here is not closed");
    add(Value{.kind = Value::Kind::kText, .text = text, .quoted = tag == "!", .place = place_of(mark)}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Value value;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // of a mapping: its last member waits for its value
  };

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(place_of(mark), str("tag \"", printable(tag), "\" has no meaning in a recipe"), "remove it");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value::Kind kind) {
    refuse_tag(mark, tag);
    if (stack_.size() >= kMaxDepth) refuse(place_of(mark), str("nested deeper than ", kMaxDepth, " levels"));
    stack_.push_back({Value{.kind = kind, .place = place_of(mark)}, anchor});
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(frame.value), frame.anchor);
  }

  void count(const Value& value, const Place& place) {
    bytes_ += value.text.size();
    if (++values_ > kMaxValues || bytes_ > kMaxBytes) {
      refuse(place, str("more than ", kMaxValues, " values or ", human_bytes(kMaxBytes), ", with aliases written out"),
             "a recipe is a page of text");
    }
    for (const Value& item : value.items) count(item, place);
    for (const Value::Member& member : value.members) count(member.value, place);
  }

  void add(Value value, YAML::anchor_t anchor) {
    if (value.items.empty() && value.members.empty()) count(value, value.place);
    if (anchor != 0) anchors_[anchor] = value;
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& top = stack_.back();
    if (top.value.kind == Value::Kind::kList) {
      top.value.items.push_back(std::move(value));
    } else if (top.has_key) {
      Value::Member& member = top.value.members.back();
      // yaml-cpp places a missing value at whatever comes next.
      if (value.kind == Value::Kind::kNull) value.place = member.place;
      member.value = std::move(value);
      top.has_key = false;
    } else {
      if (value.kind != Value::Kind::kText) refuse(value.place, "a key is " + value.describe() + ", expected a name");
      for (const Value::Member& other : top.value.members) {
        if (other.name != value.text) continue;
        refuse(value.place,
               str("key \"", printable(value.text), "\" appears twice",
                   value.place.line > 0 ? str(", first in line ", other.place.line) : std::string()),
               "remove one of them");
      }
      top.value.members.push_back({value.text, value.place, Value{.place = value.place}});
      top.has_key = true;
    }
  }

  const Place start_;
  const Sources& sources_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Value> anchors_;
  size_t values_ = 0, bytes_ = 0;
  Value root_;
};

// What yaml-cpp would misread, or report in its own words at a place that does not help.
void check_text(std::string_view text, const TreeBuilder& builder) {
  const size_t invalid = invalid_utf8_at(text);
  YAML::Mark mark;
  bool indentation = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (i == invalid) {
      builder.refuse(builder.place_of(mark), "not UTF-8 text", "save the recipe in UTF-8");
    }
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "0x%02X", c);
      builder.refuse(builder.place_of(mark), str("a control character (", code, ")"), "is this a text file?");
    }
    if (c == '\t' && indentation) {
      const size_t next = text.find_first_not_of(" \t\r", i);
      if (next != text.npos && text[next] != '\n' && text[next] != '#') {
        builder.refuse(builder.place_of(mark), "a tab in the indentation", "indent with spaces");
      }
    }
    if (c == '\n') {
      ++mark.line;
      mark.column = 0;
      indentation = true;
    } else {
      ++mark.column;
      if (c != ' ' && c != '\t') indentation = false;
    }
  }
}

class DocumentCounter final : public YAML::EventHandler {
 public:
  explicit DocumentCounter(const TreeBuilder& builder) : builder_(builder) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    builder_.refuse(builder_.place_of(mark), "a second document starts here", "one file holds one recipe");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  const TreeBuilder& builder_;
};

}  // namespace

Value read_yaml(std::string_view text, const Place& place, const Sources& sources) {
  TreeBuilder builder(place, sources);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    builder.refuse(builder.place_of(YAML::Mark()), "UTF-16 text", "save the recipe in UTF-8");
  }
  check_text(text, builder);
  std::istringstream stream(std::string(text) + "\n#" + kEndMark + "\n");
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Value{.place = place};
    DocumentCounter rest(builder);
    parser.HandleNextDocument(rest);
  } catch (const YAML::Exception& error) {
    builder.refuse(builder.place_of(error.mark), "not valid YAML: " + error.msg);
  }
  return builder.take();
}

}  // namespace skytrain::recipe
