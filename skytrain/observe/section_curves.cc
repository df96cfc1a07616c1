// How the run went: four charts, and the same in two tables for readers without scripts or on paper.

#include <cmath>
#include <tuple>

#include "skytrain/base/text.h"
#include "skytrain/observe/chart_data.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

using record::MetricsLine;
using Member = double MetricsLine::*;

constexpr size_t kTrainRows = 24, kEvalRows = 100;
constexpr size_t kSmoothFrom = 60;  // fewer points are a readable curve as they are

Series series_of(const std::vector<MetricsLine>& lines, Member member) {
  Series series;
  series.reserve(lines.size());
  for (const MetricsLine& line : lines) {
    if (std::isfinite(line.*member)) series.push_back({static_cast<double>(line.step), line.*member});
  }
  return series;
}

// In a sentence: what a curve shows to whoever can't see it.
std::string describe(const char* what, const Series& series, std::string (*show)(double)) {
  if (series.empty()) return str(what, ": nothing recorded. ");
  double least = series[0].y, most = series[0].y;
  for (const Point& point : series) {
    least = std::min(least, point.y);
    most = std::max(most, point.y);
  }
  if (series.size() == 1) return str(what, " ", show(least), " at step ", count(series[0].x), ". ");
  if (least == most)
    return str(what, " ", show(least), " from step ", count(series.front().x), " to ", count(series.back().x), ". ");
  return str(what, " from ", show(series.front().y), " at step ", count(series.front().x), " to ",
             show(series.back().y), " at step ", count(series.back().x), " (least ", show(least), ", most ", show(most),
             "). ");
}

std::string show_number(double value) {
  return std::fabs(value) < 1000 ? significant(value, 4) : count(std::round(value));
}
std::string show_percent(double value) { return percent(value); }

std::string figure(const char* id, const char* title, const std::string& caption) {
  return str("<figure><h3 id=\"", id, "-title\">", title, "</h3>\n<div class=\"chart\"><canvas data-chart=\"", id,
             "\" role=\"img\" aria-labelledby=\"", id, "-title ", id, "-caption\"></canvas></div>\n<figcaption id=\"",
             id, "-caption\">", caption, "</figcaption></figure>\n");
}

// At most `limit` of the lines, evenly spaced, the first and the last among them.
std::vector<const MetricsLine*> pick(const std::vector<MetricsLine>& lines, size_t limit) {
  std::vector<const MetricsLine*> out;
  const size_t rows = std::min(limit, lines.size());
  for (size_t i = 0; i < rows; ++i) out.push_back(&lines[rows == 1 ? 0 : i * (lines.size() - 1) / (rows - 1)]);
  return out;
}

std::string caption_of(const char* what, size_t shown, size_t all) {
  return shown == all ? str(what, ", ", count(static_cast<double>(all)), " in all")
                      : str(what, ", ", shown, " of ", count(static_cast<double>(all)), ", evenly spaced");
}

std::string eval_table(const std::vector<MetricsLine>& lines) {
  if (lines.empty()) return "";
  const auto rows = pick(lines, kEvalRows);
  Table table(caption_of("Evaluations", rows.size(), lines.size()), "nnnnnn",
              {"Step", "Epoch", "Loss", "Top-1", "Samples", "Seconds"});
  for (const MetricsLine* line : rows) {
    table.row({count(static_cast<double>(line->step)), significant(line->epoch, 4), significant(line->eval_loss, 5),
               percent(line->eval_top1), count(line->eval_samples), significant(line->eval_seconds, 3)});
  }
  const bool long_table = rows.size() > 12;
  return long_table ? "<details><summary>Table of evaluations</summary>\n" + table.html() + "</details>\n"
                    : table.html();
}

std::string train_table(const std::vector<MetricsLine>& lines) {
  if (lines.empty()) return "";
  const auto rows = pick(lines, kTrainRows);
  Table table(caption_of("Logged lines of training", rows.size(), lines.size()), "nnnnnn",
              {"Step", "Epoch", "Samples", "Loss", "Learning rate", "Samples a second"});
  for (const MetricsLine* line : rows) {
    table.row({count(static_cast<double>(line->step)), significant(line->epoch, 4), count(line->samples),
               significant(line->loss, 5), significant(line->lr, 4),
               std::isnan(line->samples_per_second) ? "–" : count(std::round(line->samples_per_second))});
  }
  return "<details><summary>Table of training</summary>\n" + table.html() + "</details>\n";
}

}  // namespace

OrderedJson curves_data(const Records& records) {
  const auto& [train, eval] = std::tie(records.metrics.train, records.metrics.eval);
  const auto noisy = [&lines = train](Member member) {
    const Series series = series_of(lines, member);
    OrderedJson curves = {{"train", chart_json(downsample(series))}};
    if (series.size() >= kSmoothFrom) {
      curves["smooth"] = chart_json(downsample(smooth(series, 4 + static_cast<double>(series.size()) / 60)));
    }
    return curves;
  };
  OrderedJson loss = noisy(&MetricsLine::loss);
  loss["eval"] = chart_json(downsample(series_of(eval, &MetricsLine::eval_loss)));
  return {{"loss", loss},
          {"top1", {{"eval", chart_json(downsample(series_of(eval, &MetricsLine::eval_top1)))}}},
          {"lr", {{"train", chart_json(downsample(series_of(train, &MetricsLine::lr)))}}},
          {"rate", noisy(&MetricsLine::samples_per_second)}};
}

std::string curves_section(const Records& records) {
  const auto& [train, eval] = std::tie(records.metrics.train, records.metrics.eval);
  if (train.empty() && eval.empty()) {
    return section("curves", "Curves", "<p>No step has been logged, so there is nothing to draw.</p>\n");
  }
  std::string out =
      "<noscript><p class=\"message open\">The curves are drawn by a script of this page, which is switched off; the "
      "tables hold the same figures.</p></noscript>\n<div class=\"figures\">\n";
  out += figure("loss", "Loss",
                describe("Training loss", series_of(train, &MetricsLine::loss), show_number) +
                    describe("Evaluation loss", series_of(eval, &MetricsLine::eval_loss), show_number));
  if (!eval.empty()) {
    out += figure("top1", "Top-1 accuracy",
                  describe("Top-1 accuracy", series_of(eval, &MetricsLine::eval_top1), show_percent));
  }
  out += figure("lr", "Learning rate", describe("Learning rate", series_of(train, &MetricsLine::lr), show_number));
  out += figure("rate", "Samples a second",
                describe("Samples a second", series_of(train, &MetricsLine::samples_per_second), show_number));
  return section("curves", "Curves", out + "</div>\n" + eval_table(eval) + train_table(train));
}

}  // namespace skytrain::observe
