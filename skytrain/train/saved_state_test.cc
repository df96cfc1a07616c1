#include "skytrain/train/saved_state.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skytrain/base/error.h"

namespace skytrain::train {
namespace {

using testing::HasSubstr;

constexpr char kDirectory[] = "/run/checkpoints";

class SavedStateTest : public testing::Test {
 protected:
  static Engine make_engine(uint64_t seed) {
    recipe::ModelSpec model;
    model.name = "mlp";
    model.hidden = {8};
    recipe::OptimizerSpec optimizer;
    optimizer.name = "adam";
    optimizer.lr = 0.01;
    Engine::Options options;
    options.input = {1, 4, 4};
    return Engine(model, optimizer, seed, options);
  }

  SavedState open(const std::string& data = "data") {
    SavedState saved(fs, clock, kDirectory, "recipe");
    data::DatasetInfo info;
    info.fingerprint = data;
    saved.set_data(info);
    return saved;
  }

  void save(uint64_t step) {
    RunState state;
    state.step = step;
    state.last_loss = double(step);
    std::vector<std::string> ignored;
    SavedState saved = open();
    saved.save(engine, state, step * 8, /*keep=*/10, /*spared=*/std::nullopt, &ignored);
  }

  std::string refusal(ErrorKind kind) {
    try {
      std::vector<std::string> ignored;
      open().restore(engine, &ignored);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.message();
    }
    return "not refused";
  }

  void replace(const std::string& path, const std::string& content) { write_file_atomically(fs, path, content); }
  static std::string manifest(int step) {
    return std::string(kDirectory) + "/step-0000000" + char('0' + step) + "/manifest.json";
  }

  MemoryFileSystem fs;
  FakeClock clock;
  Engine engine = make_engine(7);
};

TEST_F(SavedStateTest, WhatWasSavedComesBackWithTheSameBits) {
  save(3);
  Engine other = make_engine(99);
  std::vector<std::string> notes;
  const std::optional<RunState> state = open().restore(other, &notes);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->step, 3u);
  EXPECT_EQ(state->last_loss, 3);
  EXPECT_TRUE(notes.empty());
  for (size_t i = 0; i < engine.state().size(); ++i)
    EXPECT_TRUE(at::equal(engine.state()[i].tensor, other.state()[i].tensor)) << engine.state()[i].name;
}

TEST_F(SavedStateTest, WithoutACheckpointThereIsNothingToRestore) {
  std::vector<std::string> notes;
  EXPECT_FALSE(open().restore(engine, &notes));
  fs.make_directories(std::string(kDirectory) + "/step-00000001.tmp");  // the first save was cut off
  EXPECT_FALSE(open().restore(engine, &notes));
}

TEST_F(SavedStateTest, ADamagedOneIsPassedOverWithANote) {
  save(1);
  save(2);
  replace(manifest(2), "{");
  std::vector<std::string> notes;
  const std::optional<RunState> state = open().restore(engine, &notes);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->step, 1u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("step-00000002"));
}

// Every checkpoint of a run was damaged: the next attempt began at step 0 without a word and cut the metrics to
// nothing.
TEST_F(SavedStateTest, WhenAllAreDamagedTheRunDoesNotSilentlyBeginAgain) {
  save(1);
  save(2);
  replace(manifest(1), "{");
  replace(manifest(2), "{");
  EXPECT_THAT(refusal(ErrorKind::kData), HasSubstr("no older checkpoint is valid either"));
}

// After a downgrade the newest checkpoints were taken for worthless, and hours of work were trained again.
TEST_F(SavedStateTest, ANewerFormatIsNotPassedOver) {
  save(1);
  save(2);
  std::string text = fs.read_file(manifest(2));
  const size_t at = text.find("\"version\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(text.find('1', at), 1, "2");
  replace(manifest(2), text);
  const std::string message = refusal(ErrorKind::kData);
  EXPECT_THAT(message, HasSubstr("step-00000002"));
  EXPECT_THAT(message, HasSubstr("version"));
}

TEST_F(SavedStateTest, OtherDataIsRefused) {
  save(1);
  std::vector<std::string> notes;
  EXPECT_THROW(open("other data").restore(engine, &notes), Error);
}

TEST_F(SavedStateTest, OldOnesThatCannotBeRemovedDoNotEndTheRun) {
  save(1);
  save(2);
  fs.set_fault([](std::string_view call, const std::string& path) {
    return call == "rename" && path.find("step-00000001") != std::string::npos ? 5 : 0;
  });
  RunState state;
  state.step = 3;
  std::vector<std::string> notes;
  SavedState saved = open();
  saved.save(engine, state, 24, /*keep=*/1, /*spared=*/std::nullopt, &notes);
  EXPECT_EQ(saved.newest_step(), 3u);
  EXPECT_FALSE(notes.empty());
}

}  // namespace
}  // namespace skytrain::train
