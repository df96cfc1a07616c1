#include "skytrain/train/spike_watch.h"

#include <vector>

namespace skytrain::train {

SpikeWatch::SpikeWatch(FileSystem& fs, Clock& clock, const std::string& run_directory,
                       const recipe::LossSpikeSpec& spec, const RunState& state)
    : clock_(clock),
      action_(spec.action),
      detector_(spec.threshold, uint64_t(spec.window)),
      log_(fs, run_directory + "/spikes.jsonl", state.step, clock) {
  if (!state.spike_detector.is_null()) detector_.from_json(state.spike_detector);
}

SpikeWatch::Verdict SpikeWatch::observe(double loss, uint64_t step, const data::Slots& slots, const DataFeed& feed) {
  if (loss <= detector_.limit()) {
    detector_.observe(loss);
    return Verdict::kNone;
  }
  record(loss, step, slots, feed);
  return detector_.observe_spike() ? Verdict::kNewLevel : Verdict::kSpike;
}

void SpikeWatch::record(double loss, uint64_t step, const data::Slots& slots, const DataFeed& feed) {
  OrderedJson line = {
      {"t", clock_.unix_seconds()},         {"step", step},     {"loss", loss}, {"mean", detector_.mean()},
      {"deviation", detector_.deviation()}, {"action", action_}};
  OrderedJson samples = OrderedJson::array();
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < slots.slots_per_step(); ++i) {
    const data::Slot slot = slots.slot(step - 1, i);
    line["epoch"] = slot.epoch;
    feed.samples_of(slot, indices);
    for (const uint64_t index : indices) samples.push_back(index);
  }
  line["samples"] = std::move(samples);
  log_.write(line);
  log_.sync();
}

}  // namespace skytrain::train
