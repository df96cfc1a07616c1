// skytrain/observe/html.h
//
// Text into HTML. Names of classes, values of recipes and paths come from anywhere, so nothing reaches a page but
// through these functions.

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/json.h"

namespace skytrain::observe {

// For the content of an element and for a quoted attribute. Bytes that are not UTF-8, control characters and those that
// turn the direction of writing are shown as \xNN; more than `limit` bytes are cut with "…".
std::string escape(std::string_view text, size_t limit = 2000);
// The same for text of several lines in a <pre>: keeps newlines and tabs.
std::string escape_lines(std::string_view text);
// For the content of <script type="application/json">: no text in it can end the element. NaN and infinity are null.
std::string script_json(const OrderedJson& json);

// Numbers for people, independent of the locale. NaN and infinity give "–".
std::string significant(double value, int digits = 4);   // "0.08123", "1.2e-05"
std::string percent(double fraction, int decimals = 2);  // "97.31 %"
std::string count(double value);                         // "60,000"

// <table> with a caption, a header line and rows, in a container that scrolls on its own when it is too wide.
// Cells are HTML already. The first column heads its row.
class Table {
 public:
  // caption: HTML; kinds: one letter a column, 't' text or 'n' number (right-aligned). css_class "pairs": of keys and
  // values, which a narrow screen shows below each other.
  Table(std::string caption, std::string kinds, const std::vector<std::string>& header, std::string css_class = {});
  void row(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::string caption_, kinds_, css_class_, header_, rows_;
};

}  // namespace skytrain::observe
