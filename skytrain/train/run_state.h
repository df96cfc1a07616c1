// skytrain/train/run_state.h
//
// What a run must remember beside tensors: where it is, and what it has measured so far. Part of the checkpoint.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/base/json.h"
#include "skytrain/train/engine.h"

namespace skytrain::train {

struct Evaluation {
  uint64_t step = 0, samples = 0;
  double loss = 0, top1 = 0, seconds = 0;
};

struct RunState {
  uint64_t step = 0;  // committed optimizer steps
  // Since the last metrics line, so that a resumed run writes the same line that the uninterrupted one would.
  double log_loss_sum = 0;
  uint64_t log_samples = 0;
  TimeSplit log_time;
  // Over the whole run, all attempts.
  TimeSplit time;
  double evaluation_seconds = 0, checkpoint_seconds = 0;
  double last_loss = 0;             // of the last metrics line
  bool evaluation_pending = false;  // interrupted before or during the evaluation that was due at this step
  bool evaluated = false;           // `evaluation` holds one
  Evaluation evaluation;

  Json to_json() const;
  // Throws Error(kData) when a field is missing or of another type; where: the manifest's path.
  static RunState from_json(const Json& json, uint64_t step, const std::string& where);
};

OrderedJson to_json(const TimeSplit& time);         // data_s, forward_s, …
OrderedJson to_json(const Evaluation& evaluation);  // loss, top1, samples, seconds

}  // namespace skytrain::train
