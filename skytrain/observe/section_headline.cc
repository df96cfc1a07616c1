#include <cmath>

#include "skytrain/base/text.h"
#include "skytrain/observe/html.h"
#include "skytrain/observe/sections.h"

namespace skytrain::observe {

namespace {

struct Status {
  const char* css_class;
  std::string label, sentence;  // HTML
};

// Whether the summary was written before the attempt that the other records tell of.
bool resumed_since(const Records& records) {
  const OrderedJson& attempts = child(records.run, "attempts");
  const double summarised = number(records.summary, "attempts");
  if (attempts.is_array() && !std::isnan(summarised)) return static_cast<double>(attempts.size()) > summarised;
  const auto last_step = static_cast<double>(records.metrics.last_step());
  return text(records.summary, "status") == "interrupted" && last_step > number(records.summary, "steps");
}

Status status_of(const Records& records) {
  const std::string status = text(records.summary, "status");
  const uint64_t last_step = records.metrics.last_step();
  const double summary_steps = number(records.summary, "steps");
  const std::string reached = last_step > 0
                                  ? str("The last step on record is ", count(static_cast<double>(last_step)), ".")
                                  : std::string("No step is on record.");
  if (status.empty()) {
    return {"open", "unfinished",
            "The run has no summary: it is still going on, or it was ended before it could write one. " + reached};
  }
  if (status == "complete") return {"good", "complete", ""};
  if (resumed_since(records)) {
    return {"open", "resumed",
            str("The summary is of an earlier attempt, which ended as <em>", escape(status), "</em> at step ",
                count(summary_steps), ". ", reached)};
  }
  if (status == "interrupted") {
    const std::string command = text(records.summary, "resume_command");
    return {"warn", "interrupted",
            "The run was stopped with its state saved" +
                (command.empty() ? std::string(", and can be resumed. ")
                                 : "; it goes on with <code>" + escape(command, 600) + "</code>. ") +
                reached};
  }
  if (status == "failed") {
    const OrderedJson& error = child(records.summary, "error");
    std::string sentence = "<strong>" + escape(text(error, "kind")) + "</strong>: ";
    if (const std::string where = text(error, "where"); !where.empty()) sentence += escape(where) + ": ";
    sentence += escape(text(error, "what"));
    if (const std::string hint = text(error, "hint"); !hint.empty()) sentence += "<br>" + escape(hint);
    return {"bad", "failed", sentence + "<br>" + reached};
  }
  return {"open", escape(status), reached};
}

std::string tile(const std::string& label, const std::string& value, const std::string& detail) {
  return str("<div class=\"tile\"><dt>", label, "</dt><dd>", value, "</dd>",
             detail.empty() ? "" : "<dd class=\"detail\">" + detail + "</dd>", "</div>\n");
}

std::string tiles(const Records& records) {
  const OrderedJson& summary = records.summary;
  const OrderedJson& eval = child(summary, "eval");
  const MetricsHistory& metrics = records.metrics;
  const record::MetricsLine none;
  const record::MetricsLine& last_eval = metrics.eval.empty() ? none : metrics.eval.back();
  const record::MetricsLine& last_train = metrics.train.empty() ? none : metrics.train.back();

  std::string out = "<dl class=\"tiles\">\n";
  const double top1 = first_of({number(eval, "top1"), last_eval.eval_top1});
  const double samples = first_of({number(eval, "samples"), last_eval.eval_samples});
  out += tile("Top-1 accuracy", percent(top1), std::isnan(samples) ? "" : "of " + count(samples) + " samples");
  out += tile("Evaluation loss", significant(first_of({number(eval, "loss"), last_eval.eval_loss})), "");
  out += tile("Training loss", significant(first_of({number(summary, "train_loss"), last_train.loss})),
              "of the last steps");
  const TimeSplit time = metrics.time();
  const double recorded = time.data + time.forward + time.backward + time.optimizer + time.other;
  const double seconds = first_of({number(summary, "seconds"), recorded});
  const double rate = first_of({number(summary, "samples_per_second"), last_train.samples / recorded});
  out += tile("Samples a second", std::isnan(rate) ? "–" : count(std::round(rate)), "while training");
  const double steps = first_of({number(summary, "steps"), static_cast<double>(metrics.last_step())});
  out += tile("Training time", std::isnan(seconds) ? "–" : escape(human_seconds(seconds)),
              steps > 0 ? count(steps) + " steps" : "");
  return out + "</dl>\n";
}

std::string notices(const Records& records) {
  std::string items;
  for (const std::string& note : records.notes) items += "<li>" + escape(note) + "</li>\n";
  const MetricsHistory& metrics = records.metrics;
  if (metrics.steps_without_finite_loss > 0) {
    items += str("<li>The loss was not a finite number in ",
                 count(static_cast<double>(metrics.steps_without_finite_loss)), " logged line(s), first at step ",
                 count(static_cast<double>(metrics.first_step_without_finite_loss)), ".</li>\n");
  }
  if (metrics.scan.torn) {
    items += "<li>The last line of metrics.jsonl has no end: the run was killed while writing, or is writing.</li>\n";
  }
  return items.empty() ? "" : "<ul class=\"notices\" aria-label=\"Notes on the records\">\n" + items + "</ul>\n";
}

}  // namespace

std::string run_name(const Records& records) {
  for (const OrderedJson* source : {&records.run, &records.recipe}) {
    if (const std::string name = text(*source, "name"); !name.empty()) return name;
  }
  return records.directory;
}

std::string headline(const Records& records) {
  const Status status = status_of(records);
  std::string out = str("<header>\n<p class=\"kicker\">SkyTrain run report</p>\n<h1>", escape(run_name(records)),
                        " <span class=\"status ", status.css_class, "\">", status.label, "</span></h1>\n");
  out += "<p class=\"path\">" + escape(records.directory) + "</p>\n";
  if (!status.sentence.empty()) {
    out += str("<p class=\"message ", status.css_class, "\" role=\"note\">", status.sentence, "</p>\n");
  }
  return out + notices(records) + tiles(records) + "</header>\n";
}

}  // namespace skytrain::observe
