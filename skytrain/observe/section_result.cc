// The final table: every figure of the result in words.

#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

std::string result_section(const Records& records) {
  const OrderedJson& summary = records.summary;
  const OrderedJson& eval = child(summary, "eval");
  const MetricsHistory& metrics = records.metrics;
  const record::MetricsLine none;
  const record::MetricsLine& last_train = metrics.train.empty() ? none : metrics.train.back();
  const record::MetricsLine& last_eval = metrics.eval.empty() ? none : metrics.eval.back();

  Table table(summary.is_null() ? "So far, from the lines of metrics" : "At the end of the run", "tn",
              {"Quantity", "Value"});
  const auto row = [&](const char* label, const std::string& value) { table.row({label, value}); };
  const auto number_row = [&](const char* label, double value) {
    if (!std::isnan(value)) row(label, count(value));
  };
  const auto seconds_row = [&](const char* label, double value) {
    if (!std::isnan(value)) row(label, escape(human_seconds(value)));
  };
  const auto loss_row = [&](const char* label, double value) {
    if (!std::isnan(value)) row(label, significant(value, 6));
  };

  if (const std::string status = text(summary, "status"); !status.empty()) row("Status", escape(status, 40));
  const double last_step = metrics.last_step() > 0 ? static_cast<double>(metrics.last_step()) : std::nan("");
  number_row("Optimizer steps", first_of({number(summary, "steps"), last_step}));
  number_row("Samples consumed", first_of({number(summary, "samples"), last_train.samples}));
  if (!std::isnan(last_train.epoch)) row("Epochs", significant(last_train.epoch, 4));
  loss_row("Training loss, last line", first_of({number(summary, "train_loss"), last_train.loss}));
  loss_row("Evaluation loss", first_of({number(eval, "loss"), last_eval.eval_loss}));
  const double top1 = first_of({number(eval, "top1"), last_eval.eval_top1});
  if (!std::isnan(top1)) {
    const double samples = first_of({number(eval, "samples"), last_eval.eval_samples});
    const std::string of =
        std::isnan(samples) ? "" : str(" (", count(std::round(top1 * samples)), " of ", count(samples), ")");
    row("Top-1 accuracy", percent(top1) + of);
  }
  if (const auto* best = metrics.best_eval(); best && metrics.eval.size() > 1) {
    row("Best top-1 accuracy", str(percent(best->eval_top1), " at step ", count(static_cast<double>(best->step))));
  }
  seconds_row("Training time, without evaluation and saving", number(summary, "seconds"));
  if (const double rate = number(summary, "samples_per_second"); !std::isnan(rate)) {
    row("Samples a second", count(std::round(rate)));
  }
  seconds_row("Time to the first step", number(summary, "time_to_first_step_s"));
  if (const double parameters = number(summary, "parameters"); !std::isnan(parameters)) {
    row("Parameters", str(count(parameters), " (", human_bytes(parameters * 4), " in fp32)"));
  }
  if (const std::string precision = text(summary, "precision"); !precision.empty())
    row("Precision", escape(precision, 40));
  number_row("Devices", number(summary, "devices"));
  number_row("Samples per slot (micro-batch)", number(summary, "slot"));
  number_row("Attempts", number(summary, "attempts"));
  return section("result", "Result", table.empty() ? "<p>Nothing has been recorded yet.</p>\n" : table.html());
}

}  // namespace skytrain::observe
