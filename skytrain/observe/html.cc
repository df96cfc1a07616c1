#include "skytrain/observe/html.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "skytrain/base/text.h"

namespace skytrain::observe {

namespace {

constexpr const char* kNoValue = "–";

std::string entities(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string to_text(double value, std::chars_format format, int precision) {
  char buffer[400];  // the largest double has 309 digits
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format, precision);
  return std::string(buffer, result.ptr);
}

}  // namespace

std::string escape(std::string_view text, size_t limit) { return entities(printable(text, limit)); }

std::string escape_lines(std::string_view text) {
  std::string out;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '\n' && text[i] != '\t') continue;
    out += escape(text.substr(begin, i - begin), std::string_view::npos);
    if (i < text.size()) out += text[i];
    begin = i + 1;
  }
  return out;
}

std::string script_json(const OrderedJson& json) {
  // ensure_ascii: nothing is left that an HTML parser or a line of JavaScript could take for its own, but these three.
  const std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return kNoValue;
  return to_text(value, std::chars_format::general, digits);
}

std::string percent(double fraction, int decimals) {
  if (!std::isfinite(fraction)) return kNoValue;
  return to_text(fraction * 100, std::chars_format::fixed, decimals) + " %";
}

std::string count(double value) { return std::isfinite(value) ? human_count(value) : kNoValue; }

Table::Table(std::string caption, std::string kinds, const std::vector<std::string>& header, std::string css_class)
    : caption_(std::move(caption)), kinds_(std::move(kinds)), css_class_(std::move(css_class)) {
  for (size_t i = 0; i < header.size(); ++i) {
    header_ += str("<th scope=\"col\"", kinds_.at(i) == 'n' ? " class=\"n\">" : ">", header[i], "</th>");
  }
}

void Table::row(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const char* const number = kinds_.at(i) == 'n' ? " class=\"n\"" : "";
    rows_ +=
        i == 0 ? str("<th scope=\"row\"", number, ">", cells[i], "</th>") : str("<td", number, ">", cells[i], "</td>");
  }
  rows_ += "</tr>\n";
}

std::string Table::html() const {
  return str("<div class=\"scroll\" tabindex=\"0\"><table", css_class_.empty() ? "" : " class=\"" + css_class_ + "\"",
             ">\n<caption>", caption_, "</caption>\n<thead><tr>", header_, "</tr></thead>\n<tbody>\n", rows_,
             "</tbody></table></div>\n");
}

}  // namespace skytrain::observe
