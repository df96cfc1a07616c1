#include "skytrain/train/spike_response.h"

#include <optional>
#include <vector>

#include "skytrain/base/text.h"

namespace skytrain::train {

void SpikeResponse::observe(double loss, bool skipped, RunState& state, const RunPlan& plan, const DataFeed& feed) {
  const double mean = watch_.mean();
  const SpikeWatch::Verdict verdict = watch_.observe(loss, state.step, plan.slots(), feed);
  if (verdict == SpikeWatch::Verdict::kNone) return;
  std::string done = skipped ? "its update was skipped" : "recorded in spikes.jsonl";
  if (skipped && rolls_back_) {
    checkpoints_.settle(state);
    if (saved_.newest_step() > 0) {
      if (const std::string back = roll_back(state); !back.empty()) done = back;
    }
  }
  observer_.note(/*warning=*/true, str("loss ", formatted("%.4g", loss), " in step ", state.step, ", after ",
                                       formatted("%.4g", mean), " on average: ", done));
  if (verdict == SpikeWatch::Verdict::kNewLevel)
    observer_.note(/*warning=*/true,
                   str(SpikeDetector::kMostInARow, " such steps in a row: what is usual is learned anew from here"));
}

// The samples since the checkpoint stay consumed: to meet them again in the same state would end the same way.
std::string SpikeResponse::roll_back(RunState& state) {
  std::vector<std::string> notes;
  const std::optional<RunState> before = saved_.restore_from_disk(engine_, &notes);
  for (const std::string& line : notes) observer_.note(/*warning=*/true, line);
  if (!before) return "";
  state.applied_steps = before->applied_steps;
  state.applied_samples = before->applied_samples;
  if (!before->scaler.is_null()) engine_.scaler().from_json(before->scaler);
  return str("back to the weights of step ", before->step);
}

}  // namespace skytrain::train
