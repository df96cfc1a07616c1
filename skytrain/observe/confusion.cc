#include "skytrain/observe/confusion.h"

#include <algorithm>
#include <limits>

#include "skytrain/base/text.h"
#include "skytrain/observe/records.h"

namespace skytrain::observe {

namespace {

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(part) / static_cast<double>(whole);
}

Confusion damaged(const std::string& problem) {
  Confusion confusion;
  confusion.problem = problem;
  return confusion;
}

}  // namespace

Confusion read_confusion(const OrderedJson& evaluation) {
  const OrderedJson& rows = child(evaluation, "confusion");
  const OrderedJson& names = child(evaluation, "classes");
  if (rows.is_null()) return {};
  if (!rows.is_array()) return damaged("\"confusion\" is not a list");
  if (!names.is_array() || names.size() != rows.size()) {
    return damaged(str("it has ", rows.size(), " rows for ", names.is_array() ? names.size() : 0, " classes"));
  }
  Confusion confusion;
  confusion.counts.reserve(rows.size() * rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].is_array() || rows[row].size() != rows.size()) {
      return damaged(str("row ", row, " does not have ", rows.size(), " columns"));
    }
    for (const OrderedJson& cell : rows[row]) {
      if (!cell.is_number_unsigned()) return damaged(str("row ", row, " holds something else than counts"));
      confusion.counts.push_back(cell.get<uint64_t>());
    }
    confusion.classes.push_back(names[row].is_string() ? names[row].get<std::string>() : str(row));
  }
  return confusion;
}

std::vector<ClassResult> class_results(const Confusion& confusion) {
  std::vector<ClassResult> results(confusion.size());
  for (size_t truth = 0; truth < results.size(); ++truth) {
    for (size_t predicted = 0; predicted < results.size(); ++predicted) {
      results[truth].samples += confusion.at(truth, predicted);
      results[predicted].predicted += confusion.at(truth, predicted);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const uint64_t hits = confusion.at(i, i);
    results[i].recall = ratio(hits, results[i].samples);
    results[i].precision = ratio(hits, results[i].predicted);
    results[i].f1 = ratio(2 * hits, results[i].samples + results[i].predicted);
  }
  return results;
}

std::vector<Mistake> most_frequent_mistakes(const Confusion& confusion, size_t limit) {
  std::vector<Mistake> mistakes;
  for (size_t truth = 0; truth < confusion.size(); ++truth) {
    for (size_t predicted = 0; predicted < confusion.size(); ++predicted) {
      const uint64_t count = confusion.at(truth, predicted);
      if (truth != predicted && count > 0) mistakes.push_back({truth, predicted, count});
    }
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
  if (mistakes.size() > limit) mistakes.resize(limit);
  return mistakes;
}

}  // namespace skytrain::observe
