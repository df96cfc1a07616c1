#include "skytrain/train/run_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skytrain::train {
namespace {

// Steps of fp16 that overflowed have no loss; a mean over none of them once made a state that could not be read again.
TEST(RunLog, ALineWithoutAFiniteLossLeavesTheStateWhole) {
  MemoryFileSystem fs;
  FakeClock clock;
  fs.make_directories("/run");
  RunState state;
  state.step = 3;
  state.last_loss = 1.5;
  {
    RunLog log(fs, clock, "/run", 0, 60, /*generation=*/0, /*redo_evaluation=*/false);
    log.write_step(state, 24, 0.1);
    log.sync();
  }
  EXPECT_EQ(state.last_loss, 1.5);
  const RunState again = RunState::from_json(state.to_json(), 3, "manifest.json");
  EXPECT_EQ(again.last_loss, 1.5);
  EXPECT_NE(fs.read_file("/run/metrics.jsonl").find("\"loss\":null"), std::string::npos);
}

TEST(RunState, GoesThroughJsonWithItsMetricsInOrder) {
  RunState state;
  state.evaluated = true;
  state.evaluation.loss = 0.5;
  state.evaluation.metrics = {{"top1", 0.75}, {"f1", 0.5}};
  state.best = state.evaluation;
  state.slot = 8;
  state.applied_samples = 77;
  state.plateau = {{"rate", 0.1}};
  const RunState again = RunState::from_json(Json::parse(state.to_json().dump()), 9, "manifest.json");
  EXPECT_EQ(again.evaluation.metrics, state.evaluation.metrics);
  EXPECT_EQ(again.best->metric("f1"), 0.5);
  EXPECT_EQ(again.best->metric("loss"), 0.5);
  EXPECT_FALSE(again.best->metric("rmse"));
  EXPECT_EQ(again.slot, 8);
  EXPECT_EQ(again.applied_samples, 77u);
  EXPECT_EQ(again.plateau, state.plateau);
}

}  // namespace
}  // namespace skytrain::train
