#include "skytrain/train/run_log.h"

namespace skytrain::train {

RunLog::RunLog(FileSystem& fs, Clock& clock, const std::string& run_directory, uint64_t resume_step,
               uint64_t samples_per_epoch, uint64_t generation, bool redo_evaluation)
    : clock_(clock),
      metrics_(fs, run_directory + "/metrics.jsonl", resume_step, clock, redo_evaluation),
      events_(fs, clock, run_directory, resume_step),
      samples_per_epoch_(samples_per_epoch),
      generation_(generation) {}

void RunLog::write_step(RunState& state, uint64_t samples, double lr) {
  const double seconds = state.log_time.total();
  const double rate = seconds > 0 ? double(state.log_samples) / seconds : 0;
  // In fp16 it may be that none of the steps since the last line had a finite loss.
  const bool known = state.log_samples > 0;
  if (known) state.last_loss = state.log_loss_sum / double(state.log_samples);
  OrderedJson line = {{"t", clock_.unix_seconds()},
                      {"step", state.step},
                      {"samples", samples},
                      {"epoch", double(samples) / double(samples_per_epoch_)},
                      {"loss", known ? OrderedJson(state.last_loss) : OrderedJson()},
                      {"lr", lr},
                      {"world", 1},
                      {"generation", generation_},
                      {"samples_per_second", rate}};
  line.update(to_json(state.log_time));
  metrics_.write(line);
  if (known) events_.scalar("train/loss", state.step, state.last_loss);
  events_.scalar("train/lr", state.step, lr);
  events_.scalar("train/samples_per_second", state.step, rate);
  state.log_loss_sum = 0;
  state.log_samples = 0;
  state.log_time = {};
}

void RunLog::write_evaluation(const Evaluation& evaluation, uint64_t samples) {
  metrics_.write({{"t", clock_.unix_seconds()},
                  {"step", evaluation.step},
                  {"samples", samples},
                  {"epoch", double(samples) / double(samples_per_epoch_)},
                  {"world", 1},
                  {"generation", generation_},
                  {"eval", to_json(evaluation)}});
  events_.scalar("eval/loss", evaluation.step, evaluation.loss);
  for (const auto& [name, value] : evaluation.metrics) events_.scalar("eval/" + name, evaluation.step, value);
}

void RunLog::flush() {
  metrics_.flush();
  events_.flush();
}

void RunLog::sync() { metrics_.sync(); }

}  // namespace skytrain::train
