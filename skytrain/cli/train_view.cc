#include "skytrain/cli/train_view.h"

#include "skytrain/base/log.h"
#include "skytrain/base/text.h"
#include "skytrain/cli/metric_text.h"

namespace skytrain::cli {
namespace {

// Checkpoints may come at every step; people want to know that they come at all.
constexpr double kCheckpointLineSeconds = 30;

}  // namespace

TrainView::TrainView(Options options) : options_(std::move(options)), progress_(options_.progress) {}

void TrainView::on_hello(const proto::Hello& hello) { torch_version_ = hello.torch_version; }

void TrainView::on_started(const proto::Started& started) {
  started_ = started;
  step_ = started.resume_step;
  samples_ = started.resume_samples;
  log_info(str(options_.model, ": ", human_count(static_cast<double>(started.parameters)), " parameters; ",
               human_count(static_cast<double>(started.total_steps)), " steps, ",
               human_count(static_cast<double>(started.samples_per_epoch)), " samples an epoch; ", started.devices,
               started.devices == 1 ? " device" : " devices", ", slot ", started.slot, ", ", started.precision));
  for (const auto& [key, reason] : started.decisions) {
    const bool measured = key == "train.precision" || key == "train.batch";  // the line above tells of the others
    log(measured ? LogLevel::kInfo : LogLevel::kDebug, str("auto: ", key, ": ", reason));
  }
  if (started.resume_step > 0) {
    log_info(str("continuing after step ", started.resume_step, " of ", started.total_steps));
  } else if (options_.resuming) {
    log_info("the run has no checkpoint yet: starting at its first step");
  }
  if (!options_.quiet) progress_.start(options_.name, started.resume_samples, started.total_samples);
}

std::string TrainView::detail(const proto::ProgressReport& report) const {
  std::string text;
  if (started_ && started_->samples_per_epoch > 0) {
    const double epochs =
        static_cast<double>(started_->total_samples) / static_cast<double>(started_->samples_per_epoch);
    text = "epoch " + formatted("%.2f", report.epoch) + "/" + formatted("%.4g", epochs) + "  ";
  }
  return text + "loss " + formatted("%.4f", report.loss) + "  lr " + formatted("%.4g", report.lr);
}

void TrainView::on_progress(const proto::ProgressReport& report) {
  step_ = report.step;
  samples_ = report.samples;
  if (report.first && !first_step_unix_seconds_) first_step_unix_seconds_ = report.unix_seconds;
  detail_ = detail(report);
  if (!options_.quiet) progress_.update(report.samples, detail_);
}

// Progress is reported a few times a second; what follows a step tells of the steps in between.
void TrainView::reached(uint64_t step) {
  if (!started_ || step <= step_) return;
  step_ = step;
  if (step != started_->total_steps) return;
  samples_ = started_->total_samples;
  if (!options_.quiet) progress_.update(samples_, detail_);
}

void TrainView::on_note(const proto::Note& note) {
  log(note.level == "warning" ? LogLevel::kWarning : LogLevel::kInfo, printable(note.line, 2000));
}

void TrainView::on_checkpoint(const proto::CheckpointDone& checkpoint) {
  reached(checkpoint.step);
  const std::string line =
      str("checkpoint of step ", checkpoint.step, " saved: training waited ", human_seconds(checkpoint.seconds));
  const double now = options_.clock->monotonic_seconds();
  const bool show = !last_checkpoint_line_ || now - *last_checkpoint_line_ >= kCheckpointLineSeconds;
  if (show) last_checkpoint_line_ = now;
  log(show ? LogLevel::kInfo : LogLevel::kDebug, line);
}

void TrainView::on_evaluation(const proto::EvaluationDone& evaluation) {
  reached(evaluation.step);
  std::string metrics;
  for (const auto& [name, value] : evaluation.metrics)
    metrics += ", " + metric_title(name) + " " + metric_value(name, value);
  log_info(str("step ", evaluation.step, ": eval loss ", formatted("%.4f", evaluation.loss), metrics, " of ",
               human_count(static_cast<double>(evaluation.samples)), " samples in ",
               human_seconds(evaluation.seconds)));
}

void TrainView::on_stopping(std::optional<double> seconds) {
  // Without its number: steps are reported less often than they are done.
  if (seconds) {
    log_info("stopping: saving the current step, if that takes less than " + human_seconds(*seconds) + " …");
  } else {
    log_info("stopping: saving the current step … (Ctrl-C again to stop at once)");
  }
}

void TrainView::on_restart(const Error& death, int64_t n, int64_t max_restarts) {
  options_.resuming = true;
  log_warning(str(death.problem(), ": started again (", n, " of elastic.max_restarts ", max_restarts, ")"));
}

void TrainView::finish() {
  // Elsewhere than on a terminal the line of the last sample is there already: 100 % is always shown when it is
  // reached.
  const bool shown = started_ && samples_ == started_->total_samples && samples_ > started_->resume_samples;
  if (options_.progress.is_terminal || !shown) progress_.finish();
}

}  // namespace skytrain::cli
