#include "skytrain/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <map>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/checkpoint/checkpoint.h"
#include "skytrain/recipe/resolve.h"

namespace skytrain::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRun[] = "/run", kCheckpoints[] = "/run/checkpoints";

// Two epochs of 5 steps.
constexpr char kRecipe[] = R"(
version: 1
name: case
model: {name: mlp, classes: 4, hidden: [8]}
data:
  train: {format: synthetic, samples: 40, height: 6, width: 6}
  eval: {format: synthetic, samples: 20, height: 6, width: 6}
train:
  epochs: 2
  batch: 8
  optimizer: {name: sgd, lr: 0.05}
  precision: fp32
checkpoint: {every: [1 epoch]}
devices: 1
)";

class Listener : public TrainObserver {
 public:
  void started(const RunStarted&) override {}
  void progress(const StepReport& report) override {
    step = report.step;
    if (clock != nullptr) clock->advance(seconds_of_step);
  }
  void note(bool, const std::string& line) override { notes.push_back(line); }
  void checkpoint_saved(uint64_t at, uint64_t, const std::string&, double) override { saved.push_back(at); }
  void evaluated(const Evaluation& evaluation) override { evaluations.push_back(evaluation); }

  FakeClock* clock = nullptr;
  double seconds_of_step = 0;
  uint64_t step = 0;
  std::vector<std::string> notes;
  std::vector<uint64_t> saved;
  std::vector<Evaluation> evaluations;
};

// This thread runs on one core while alive: a run then has no threads, whose meetings take the time on a busy machine.
class OneCore {
 public:
  OneCore() {
    CPU_ZERO(&before_);
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() { fs.make_directories(kRun); }

  // Goes on from the newest checkpoint, if there is one.
  TrainOutcome run(
      const std::vector<std::string>& sets, const std::function<bool()>& stop = [] { return false; }) {
    listener = Listener();
    listener.clock = &clock;
    listener.seconds_of_step = clock_steps;
    const TrainOptions options{
        .recipe = recipe::resolve_text(kRecipe, "case.yaml", "/", sets).recipe, .run_directory = kRun, .resume = true};
    return train(fs, clock, options, listener, stop);
  }

  std::string refusal(ErrorKind kind, const std::vector<std::string>& sets) {
    try {
      run(sets);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      return error.message();
    }
    return "not refused";
  }

  std::vector<uint64_t> saved_steps() const {
    std::vector<uint64_t> steps;
    for (const checkpoint::Candidate& found : checkpoint::list_checkpoints(fs, kCheckpoints, /*hash=*/true))
      if (found.valid) steps.push_back(found.step);
    return steps;
  }

  OneCore one_core;
  MemoryFileSystem fs;
  FakeClock clock;
  double clock_steps = 0;
  Listener listener;
};

// A run was interrupted in its last evaluation and resumed: what the evaluation found was in no checkpoint, so eval
// --best did not know the best step, and each later attempt evaluated again.
TEST_F(TrainerTest, AnEvaluationThatIsRedoneIsPartOfTheCheckpoint) {
  const std::vector<std::string> sets = {"eval.every=10 steps", "checkpoint.best=loss"};
  EXPECT_TRUE(run(sets, [&] { return listener.step == 10; }).interrupted);
  EXPECT_THAT(listener.evaluations, IsEmpty());
  EXPECT_FALSE(run(sets).interrupted);
  ASSERT_EQ(listener.evaluations.size(), 1u);
  const double loss = listener.evaluations[0].loss;

  const auto newest = checkpoint::find_newest_valid(fs, kCheckpoints, nullptr);
  ASSERT_TRUE(newest);
  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, newest->path);
  const RunState state = RunState::from_json(manifest.state.at("run"), manifest.step, newest->path);
  EXPECT_EQ(state.step, 10u);
  EXPECT_FALSE(state.evaluation_pending);
  EXPECT_EQ(state.evaluation.loss, loss);
  ASSERT_TRUE(state.best);
  EXPECT_EQ(state.best->step, 10u);

  EXPECT_EQ(run(sets).state.evaluation.loss, loss);
  EXPECT_THAT(listener.evaluations, IsEmpty()) << "once is enough";
}

// A user gave a stopped run more epochs, and it ended at once without a word.
TEST_F(TrainerTest, ALongerRunOfOneThatStoppedEarlySaysSo) {
  const std::string early_stop = "train.early_stop={metric: loss, patience: 1, min_delta: 1000}";
  EXPECT_TRUE(run({early_stop, "train.epochs=4"}).state.stopped_early);
  EXPECT_THAT(saved_steps(), Contains(10u));
  const TrainOutcome longer = run({early_stop, "train.epochs=8"});
  EXPECT_EQ(longer.state.step, 10u);
  EXPECT_THAT(listener.notes, Contains(HasSubstr("this run stopped early after step 10")));
}

// The last evaluation is the best one, though early stopping does not count it.
TEST_F(TrainerTest, StoppingEarlySaysByHowMuchNothingBecameBetter) {
  run({"train.early_stop={metric: loss, patience: 1, min_delta: 1000}", "train.epochs=4"});
  EXPECT_THAT(listener.notes, Contains("stopped early: 1 evaluation in a row was not better by 1000"));
}

// The weights were finite, but what they gave was not: the checkpoint of that step was kept as the last good one.
TEST_F(TrainerTest, AnEvaluationThatIsNanKeepsNoCheckpointOfItsStep) {
  EXPECT_THAT(refusal(ErrorKind::kDiverged, {"train.optimizer.lr=1e25", "eval.every=1 steps"}),
              HasSubstr("the evaluation loss is NaN or infinite after step 1\n  no checkpoint had been saved yet"));
  EXPECT_THAT(saved_steps(), IsEmpty());
}

// A save failed once, and the run was over.
TEST_F(TrainerTest, ASaveThatFailsIsTriedAgainAtTheNext) {
  int failures = 1;
  fs.set_fault([&](std::string_view call, const std::string& path) {
    return call == "mkdir" && path.find("step-00000002") != std::string::npos && failures-- > 0 ? ENOSPC : 0;
  });
  const TrainOutcome outcome = run({"checkpoint.every=2 steps", "checkpoint.keep=10"});
  EXPECT_EQ(outcome.state.step, 10u);
  EXPECT_EQ(saved_steps(), (std::vector<uint64_t>{10, 8, 6, 4}));
  EXPECT_THAT(listener.notes,
              Contains(AllOf(HasSubstr("the checkpoint of step 2 could not be saved, training goes on: "),
                             HasSubstr("No space left"))));
}

TEST_F(TrainerTest, SavesThatFailOneAfterTheOtherEndTheRun) {
  fs.set_fault([](std::string_view call, const std::string& path) {
    return call == "mkdir" && path.find("step-") != std::string::npos && path.find("step-00000002") == std::string::npos
               ? EIO
               : 0;
  });
  EXPECT_THAT(refusal(ErrorKind::kEnvironment, {"checkpoint.every=1 steps", "checkpoint.keep=10"}),
              HasSubstr("nput/output error"));
  EXPECT_EQ(saved_steps(), (std::vector<uint64_t>{2}));
}

// A run whose last state is not on the disk has not ended well.
TEST_F(TrainerTest, TheLastSaveMustNotFail) {
  fs.set_fault([](std::string_view call, const std::string& path) {
    return call == "mkdir" && path.find("step-00000010") != std::string::npos ? ENOSPC : 0;
  });
  EXPECT_THAT(refusal(ErrorKind::kEnvironment, {"checkpoint.every=5 steps"}), HasSubstr("No space left"));
  EXPECT_EQ(saved_steps(), (std::vector<uint64_t>{5}));
}

TEST_F(TrainerTest, WhatIsKeptForGoodStays) {
  run({"checkpoint.every=1 steps", "checkpoint.keep=1", "checkpoint.keep_every=4 steps"});
  EXPECT_EQ(saved_steps(), (std::vector<uint64_t>{10, 8, 4}));
}

// What is saved beside the training is the state of its step, though training went on meanwhile.
TEST_F(TrainerTest, ACheckpointHoldsTheStateOfItsStep) {
  clock_steps = 1;
  run({"checkpoint.every=1 steps", "checkpoint.keep=10", "train.optimizer={name: adam, lr: 0.01}"});
  std::map<uint64_t, std::string> saved;
  for (const auto& found : checkpoint::list_checkpoints(fs, kCheckpoints, /*hash=*/true))
    saved[found.step] = fs.read_file(found.path + "/rank-0-of-1.safetensors");
  ASSERT_EQ(saved.size(), 10u);
  for (const uint64_t step : {1u, 4u, 7u}) {
    fs.remove_tree(kRun);
    fs.make_directories(kRun);
    run({"checkpoint.every=[]", "train.optimizer={name: adam, lr: 0.01}"}, [&] { return listener.step == step; });
    ASSERT_EQ(saved_steps(), std::vector<uint64_t>{step});
    EXPECT_EQ(fs.read_file(str(kCheckpoints, "/", checkpoint::checkpoint_name(step), "/rank-0-of-1.safetensors")),
              saved[step]);
  }
}

// The clock asks for a save while one is being written: it is taken when that one is done, and none piles up.
TEST_F(TrainerTest, ASlowDiskDoesNotMakeSavesPileUp) {
  std::atomic<int> writing = 0, most = 0;
  fs.set_fault([&](std::string_view call, const std::string& path) {
    if (path.find("/checkpoints/step-") == std::string::npos) return 0;
    if (call == "mkdir") most = std::max(most.load(), ++writing);
    if (call == "rename") --writing;
    return 0;
  });
  clock_steps = 100;  // seconds of each step
  run({"checkpoint.every=[1 s]", "checkpoint.keep=10"});
  EXPECT_EQ(most, 1);
  EXPECT_THAT(saved_steps(), Contains(10u));
  EXPECT_GT(saved_steps().size(), 1u);
}

TEST_F(TrainerTest, AutoSavesByTheClock) {
  clock_steps = 3600;
  run({"checkpoint.every=auto", "checkpoint.mtbf=10 h", "checkpoint.keep=10"});
  EXPECT_GT(saved_steps().size(), 1u);
}

// The disk was full as well, and the user read of the disk alone.
TEST_F(TrainerTest, ADivergenceIsToldThoughTheStateBeforeItCannotBeSaved) {
  fs.set_fault([](std::string_view, const std::string& path) { return path.starts_with(kCheckpoints) ? ENOSPC : 0; });
  EXPECT_THAT(refusal(ErrorKind::kDiverged, {"train.optimizer.lr=1e25"}),
              HasSubstr("became NaN or infinite in step 2\n  no checkpoint had been saved yet"));
  EXPECT_THAT(listener.notes, Contains(HasSubstr("the state before it could not be saved")));
  EXPECT_THAT(listener.notes, Contains(HasSubstr("No space left")));
}

// The rate was so high that the loss rose for good: each step was a spike then and was skipped, so that no step was
// made any more.
TEST_F(TrainerTest, ARunWhoseLossHasANewLevelGoesOn) {
  const TrainOutcome outcome = run({"train.loss_spike={threshold: 0.1, window: 2, action: skip}", "train.epochs=30",
                                    "train.batch=40", "train.optimizer.lr=20", "eval.every=30 epochs"});
  EXPECT_THAT(listener.notes, Contains("10 such steps in a row: what is usual is learned anew from here"));
  EXPECT_EQ(outcome.state.step, 30u);
  EXPECT_GT(outcome.state.applied_steps, 2u);
}

// Rows of features became vertical strips of one feature: half of the row of another class.
TEST_F(TrainerTest, CutmixOfRowsIsRefused) {
  write_file_atomically(fs, "/rows.csv", "a,b,c,label\n1,2,3,0\n4,5,6,1\n7,8,9,0\n1,3,5,1\n");
  const std::vector<std::string> rows = {"data.train={format: csv, path: /rows.csv, target: label}", "data.eval=null",
                                         "model.classes=2", "train.batch=2", "train.epochs=1"};
  std::vector<std::string> sets = rows;
  sets.emplace_back("train.cutmix=1");
  EXPECT_THAT(refusal(ErrorKind::kRecipe, sets),
              HasSubstr("train.cutmix: cuts pictures, and data.train holds rows of features"));
  sets.back() = "train.mixup=1";
  EXPECT_EQ(run(sets).state.step, 2u);
}

}  // namespace
}  // namespace skytrain::train
