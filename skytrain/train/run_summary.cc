#include "skytrain/train/run_summary.h"

#include <torch/version.h>

#include "skytrain/base/process.h"
#include "skytrain/train/prefetcher.h"
#include "skytrain/train/throughput.h"

namespace skytrain::train {
namespace {

// Shorter runs don't wait for a measurement of the machine.
constexpr double kSecondsWorthMeasuring = 10;

OrderedJson bad_samples_json(const data::BadSamples& bad) {
  OrderedJson list = OrderedJson::array();
  for (const Json& one : bad.to_json())
    list.push_back({{"index", one.at(0)}, {"name", one.at(1)}, {"problem", one.at(2)}});
  return list;
}

}  // namespace

OrderedJson run_summary(bool interrupted, const RunState& state, uint64_t samples, const recipe::Recipe& recipe,
                        Engine& engine, const std::optional<data::ReadAhead::Figures>& input,
                        const RunCheckpoints::Figures& saving, const UsedData& train,
                        const std::optional<UsedData>& eval) {
  const double seconds = state.time.total();
  OrderedJson summary = {{"status", interrupted ? "interrupted" : "complete"},
                         {"steps", state.step},
                         {"samples", samples},
                         {"seconds", seconds},
                         {"samples_per_second", seconds > 0 ? double(samples) / seconds : 0.0},
                         {"peak_rss_bytes", peak_rss_bytes()}};
  if (state.evaluated) summary["eval"] = to_json(state.evaluation);
  if (state.best) {
    summary["best"] = to_json(*state.best);
    summary["best"]["step"] = state.best->step;
  }
  if (state.stopped_early) summary["stopped_early"] = true;
  if (state.applied_steps != state.step) summary["skipped_steps"] = state.step - state.applied_steps;
  if (train.bad.count() > 0) summary["bad_samples"]["train"] = bad_samples_json(train.bad);
  if (eval && eval->bad.count() > 0) summary["bad_samples"]["eval"] = bad_samples_json(eval->bad);
  summary["train_loss"] = state.last_loss;
  summary["parameters"] = model::count_parameters(engine.model());
  summary["devices"] = *recipe.devices;
  summary["slot"] = *recipe.train.slot;
  summary["precision"] = recipe.train.precision;
  const PhasePeaks& peaks = engine.peaks();
  if (peaks.all() > 0)
    summary["memory"] = {{"forward_peak_bytes", peaks.forward},
                         {"backward_peak_bytes", peaks.backward},
                         {"optimizer_peak_bytes", peaks.optimizer}};
  if (!interrupted && seconds >= kSecondsWorthMeasuring)
    summary["throughput"] = throughput_json(engine, double(samples) / seconds);
  summary["time"] = to_json(state.time);
  summary["time"]["evaluation_s"] = state.evaluation_seconds;
  summary["time"]["checkpoint_s"] = state.checkpoint_seconds;
  if (saving.saves > 0)
    summary["saving"] = {{"saves", saving.saves},       {"bytes", saving.bytes},
                         {"blocked_s", saving.blocked}, {"most_blocked_s", saving.most_blocked},
                         {"last_s", saving.last},       {"memory_saves", saving.memory_saves}};
  if (input) summary["data"] = to_json(*input);
  summary["data_fingerprint"]["train"] = train.info.fingerprint;
  if (eval) summary["data_fingerprint"]["eval"] = eval->info.fingerprint;
  summary["torch_version"] = TORCH_VERSION;
  return summary;
}

}  // namespace skytrain::train
