// skytrain/train/run_state.h
//
// What a run must remember beside tensors: where it is, and what it has measured so far. Part of the checkpoint.

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skytrain/base/json.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

struct Evaluation {
  uint64_t step = 0, samples = 0;
  double loss = 0, seconds = 0;
  // Of data of classes: top1, top5 (of more than 5 classes), f1 (macro average), shares in [0, 1]. Of values: accuracy
  // (bce: the share of outputs on the right side) or rmse (mse).
  std::vector<std::pair<std::string, double>> metrics;

  // "loss" or one of metrics.
  std::optional<double> metric(const std::string& name) const;
};

struct RunState {
  uint64_t step = 0;  // steps done: their samples are consumed
  // Those of them whose update was applied (fp16 overflow and loss spikes skip some), and their samples: what the
  // schedule and Adam's bias correction count.
  uint64_t applied_steps = 0, applied_samples = 0;
  // Since the last metrics line, so that a resumed run writes the same line that the uninterrupted one would.
  double log_loss_sum = 0;
  uint64_t log_samples = 0;
  TimeSplit log_time;
  // Over the whole run, all attempts.
  TimeSplit time;
  double evaluation_seconds = 0, checkpoint_seconds = 0;
  double last_loss = 0;  // of the last metrics line
  int64_t slot = 0;      // of the micro-batches where memory made them smaller than the recipe; 0: it did not
  bool evaluation_pending = false;  // interrupted before or during the evaluation that was due at this step
  bool evaluated = false;           // `evaluation` holds one
  Evaluation evaluation;
  // Of the evaluations so far, by the metric that early stopping or checkpoint.best name.
  std::optional<Evaluation> best;
  // The steps of the checkpoint.keep_best best ones and their values of best_metric, which is checkpoint.best, best
  // first.
  std::string best_metric;
  std::vector<std::pair<uint64_t, double>> best_steps;
  std::optional<double> early_stop_value;  // of the last evaluation that was better by early_stop.min_delta
  int64_t evaluations_without_better = 0;  // since then
  bool stopped_early = false;
  Json bad_samples;  // {"train", "eval"}: data::BadSamples of each set; null where none may be left out
  Json plateau, scaler, spike_detector;  // states of these objects; null where the run has none

  Json to_json() const;
  // Throws Error(kData) when a field is missing or of another type; where: the manifest's path.
  static RunState from_json(const Json& json, uint64_t step, const std::string& where);
};

OrderedJson to_json(const TimeSplit& time);         // data_s, forward_s, …
OrderedJson to_json(const Evaluation& evaluation);  // loss, the metrics by name, samples, seconds

}  // namespace skytrain::train
