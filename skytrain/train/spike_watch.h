// skytrain/train/spike_watch.h
//
// Losses far above those before: found by SpikeDetector, written to <run>/spikes.jsonl with the samples that made them.

#pragma once
#include <cstdint>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"
#include "skytrain/data/slots.h"
#include "skytrain/recipe/recipe.h"
#include "skytrain/record/metrics.h"
#include "skytrain/train/data_feed.h"
#include "skytrain/train/run_state.h"
#include "skytrain/train/spike_detector.h"

namespace skytrain::train {

class SpikeWatch {
 public:
  // Goes on from state.spike_detector; lines of later steps than state.step are dropped.
  SpikeWatch(FileSystem& fs, Clock& clock, const std::string& run_directory, const recipe::LossSpikeSpec& spec,
             const RunState& state);

  // The largest loss that is no spike.
  double limit() const { return detector_.limit(); }
  double mean() const { return detector_.mean(); }
  enum class Verdict {
    kNone,
    kSpike,
    kNewLevel,  // the last of SpikeDetector::kMostInARow spikes
  };
  // After step `step` (1-based) with this mean loss. A spike is written down.
  Verdict observe(double loss, uint64_t step, const data::Slots& slots, const DataFeed& feed);

  Json to_json() const { return detector_.to_json(); }

 private:
  void record(double loss, uint64_t step, const data::Slots& slots, const DataFeed& feed);

  Clock& clock_;
  std::string action_;
  SpikeDetector detector_;
  record::MetricsWriter log_;
};

}  // namespace skytrain::train
