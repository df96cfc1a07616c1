// Which classes are told apart: the confusion matrix, and recall and precision of each class.

#include <algorithm>
#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/confusion.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

constexpr size_t kShownClasses = 50;  // a wider matrix is folded away
constexpr size_t kLongName = 24;

// The shade says which share of the row's samples is in the cell: q1 (a trace) to q9 (all); none for 0.
std::string cell(uint64_t value, uint64_t row_total, bool hit) {
  if (value == 0) return "<td class=\"z\">0</td>";
  const double share = static_cast<double>(value) / static_cast<double>(row_total);
  // Mistakes are rare: their shade grows with the root, so that one in a hundred is seen.
  const int shade = std::clamp(static_cast<int>(std::ceil((hit ? share : std::sqrt(share)) * 9)), 1, 9);
  return str("<td class=\"", hit ? "hit" : "miss", " q", shade, "\">", count(static_cast<double>(value)), "</td>");
}

std::string matrix(const Confusion& confusion, const std::vector<ClassResult>& results) {
  std::string head, body;
  for (const std::string& name : confusion.classes) {
    head += str("<th scope=\"col\" title=\"", escape(name), "\">", escape(name, kLongName), "</th>");
  }
  for (size_t truth = 0; truth < confusion.size(); ++truth) {
    const std::string& name = confusion.classes[truth];
    body += str("<tr><th scope=\"row\" title=\"", escape(name), "\">", escape(name, kLongName), "</th>");
    for (size_t predicted = 0; predicted < confusion.size(); ++predicted) {
      body += cell(confusion.at(truth, predicted), results[truth].samples, truth == predicted);
    }
    body += "</tr>\n";
  }
  return str(
      "<p>Darker: a larger share of the true class; blue is right, orange is wrong.</p>\n<div class=\"scroll\" "
      "tabindex=\"0\"><table class=\"matrix\">\n<caption>Rows: true class, columns: predicted class</caption>\n"
      "<thead><tr><th scope=\"col\">true \\ predicted</th>",
      head, "</tr></thead>\n<tbody>\n", body, "</tbody></table></div>\n");
}

}  // namespace

std::string confusion_section(const Records& records) {
  if (records.evaluation.is_null()) return "";
  const Confusion confusion = read_confusion(records.evaluation);
  if (!confusion.problem.empty()) {
    return section("confusion", "Confusion matrix",
                   "<p class=\"message warn\">evaluation.json holds no usable confusion matrix: " +
                       escape(confusion.problem) + ".</p>\n");
  }
  if (confusion.size() == 0) {
    return section("confusion", "Confusion matrix",
                   "<p>The record has no confusion matrix; it is left out beyond 200 classes.</p>\n");
  }
  const auto results = class_results(confusion);
  std::string content = matrix(confusion, results);
  if (confusion.size() > kShownClasses) {
    content = str("<details class=\"unprinted\"><summary>The matrix of ", confusion.size(),
                  " classes, which is wide</summary>\n", content, "</details>\n");
  }
  return section("confusion", "Confusion matrix", content);
}

std::string classes_section(const Records& records) {
  const Confusion confusion = read_confusion(records.evaluation);
  if (confusion.size() == 0) return "";
  const auto results = class_results(confusion);
  size_t worst = 0;
  for (size_t i = 1; i < results.size(); ++i) {
    if (results[i].recall < results[worst].recall || std::isnan(results[worst].recall)) worst = i;
  }
  std::string caption = str(confusion.size(), " classes");
  if (!std::isnan(results[worst].recall)) {
    caption += str("; lowest recall: ", escape(confusion.classes[worst], 80), ", ", percent(results[worst].recall, 1));
  }
  Table table(caption, "tnnnnn", {"Class", "Samples", "Predicted", "Recall", "Precision", "F1"});
  for (size_t i = 0; i < results.size(); ++i) {
    table.row({escape(confusion.classes[i], 80), count(static_cast<double>(results[i].samples)),
               count(static_cast<double>(results[i].predicted)), percent(results[i].recall),
               percent(results[i].precision), percent(results[i].f1)});
  }
  std::string rows = table.html();
  if (confusion.size() > kShownClasses) {
    rows = str("<details><summary>Table of ", confusion.size(), " classes</summary>\n", rows, "</details>\n");
  }
  return section(
      "classes", "Classes",
      "<p>Recall: the share of a class's samples that was found. Precision: the share of its predictions that "
      "was right. F1: their harmonic mean.</p>\n" +
          rows);
}

}  // namespace skytrain::observe
