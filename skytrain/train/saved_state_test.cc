#include "skytrain/train/saved_state.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <future>

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

  std::unique_ptr<SavedState> open(const std::string& data = "data") {
    auto saved = std::make_unique<SavedState>(fs, clock, kDirectory, "recipe");
    data::DatasetInfo info;
    info.fingerprint = data;
    saved->set_data(info);
    return saved;
  }

  void save(uint64_t step) {
    RunState state;
    state.step = step;
    state.last_loss = double(step);
    std::vector<std::string> ignored;
    if (!writer) writer = open();
    writer->save(engine, state, {.samples = step * 8, .keep = 10}, &ignored);
  }

  std::string refusal(ErrorKind kind) {
    try {
      std::vector<std::string> ignored;
      open()->restore(engine, &ignored);
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
  std::unique_ptr<SavedState> writer;
};

TEST_F(SavedStateTest, WhatWasSavedComesBackWithTheSameBits) {
  save(3);
  Engine other = make_engine(99);
  std::vector<std::string> notes;
  const std::optional<RunState> state = open()->restore(other, &notes);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->step, 3u);
  EXPECT_EQ(state->last_loss, 3);
  EXPECT_TRUE(notes.empty());
  for (size_t i = 0; i < engine.state().size(); ++i)
    EXPECT_TRUE(at::equal(engine.state()[i].tensor, other.state()[i].tensor)) << engine.state()[i].name;
}

// The weights of a convolution, their moments and their mean lie in memory in another order than in the file.
class SavedChannelsLast : public SavedStateTest {
 protected:
  static std::unique_ptr<Engine> make(at::MemoryFormat format, uint64_t seed) {
    recipe::ModelSpec model;
    model.name = "convnet";
    model.width = 4;
    recipe::OptimizerSpec optimizer;
    optimizer.name = "adam";
    Engine::Options options;
    options.replicas = 2;
    options.ema = 0.9;
    options.memory_format = format;
    options.input = {3, 8, 8};
    return std::make_unique<Engine>(model, optimizer, seed, options);
  }
  static void step(Engine& engine, uint64_t from, uint64_t to) {
    const auto fill = [](const data::Slot& slot, const at::Tensor& images, const at::Tensor& labels) {
      for (int64_t i = 0; i < images.numel(); ++i)
        images.mutable_data_ptr<float>()[i] = float((slot.begin * 31 + uint64_t(i) * 7919) % 256) / 128 - 1;
      for (int64_t i = 0; i < labels.numel(); ++i) labels.mutable_data_ptr<int64_t>()[i] = i % 10;
    };
    for (uint64_t at = from; at < to; ++at)
      EXPECT_TRUE(engine.step(data::Slots(16, 8, 4), at, {.lr = 0.01, .step = at + 1}, fill).finite);
  }
  static void expect_same_bits(const Engine& a, const Engine& b) {
    for (size_t i = 0; i < a.state().size(); ++i)
      EXPECT_TRUE(at::equal(a.state()[i].tensor, b.state()[i].tensor)) << a.state()[i].name;
  }
};

TEST_F(SavedChannelsLast, IsInLogicalOrderInTheFile) {
  const auto trained = make(at::MemoryFormat::ChannelsLast, 7);
  step(*trained, 0, 3);
  int reordered = 0;
  for (const tensor::NamedTensor& item : trained->state()) {
    if (item.tensor.dim() != 4) continue;
    EXPECT_TRUE(item.tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << item.name;
    reordered += item.tensor.is_contiguous() ? 0 : 1;
  }
  EXPECT_GE(reordered, 4 * 3) << "weights, mean and two moments of the convolutions beyond the first";
  RunState state;
  state.step = 3;
  const std::unique_ptr<SavedState> saved = open();
  const std::string path = saved->save(*trained, state, {.samples = 24, .keep = 10}, nullptr);

  const checkpoint::Manifest manifest = checkpoint::read_manifest(fs, path);
  const checkpoint::LoadedFile file = checkpoint::load_file(fs, path, manifest.files.at(0));
  for (const tensor::NamedTensor& item : trained->state()) {
    const at::Tensor expected = item.tensor.contiguous();
    const auto bytes = file.bytes(item.name);
    ASSERT_EQ(bytes.size(), expected.nbytes()) << item.name;
    EXPECT_EQ(std::memcmp(bytes.data(), expected.const_data_ptr(), bytes.size()), 0) << item.name;
  }

  std::vector<std::string> notes;
  const auto again = make(at::MemoryFormat::ChannelsLast, 99), contiguous = make(at::MemoryFormat::Contiguous, 99);
  ASSERT_TRUE(open()->restore(*again, &notes));
  ASSERT_TRUE(open()->restore(*contiguous, &notes));
  expect_same_bits(*trained, *again);
  expect_same_bits(*trained, *contiguous);
  step(*trained, 3, 6);
  step(*again, 3, 6);
  expect_same_bits(*trained, *again);
}

TEST_F(SavedStateTest, WithoutACheckpointThereIsNothingToRestore) {
  std::vector<std::string> notes;
  EXPECT_FALSE(open()->restore(engine, &notes));
  fs.make_directories(std::string(kDirectory) + "/step-00000001.tmp");  // the first save was cut off
  EXPECT_FALSE(open()->restore(engine, &notes));
}

TEST_F(SavedStateTest, ADamagedOneIsPassedOverWithANote) {
  save(1);
  save(2);
  replace(manifest(2), "{");
  std::vector<std::string> notes;
  const std::optional<RunState> state = open()->restore(engine, &notes);
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
  EXPECT_THROW(open("other data")->restore(engine, &notes), Error);
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
  writer->save(engine, state, {.samples = 24, .keep = 1}, &notes);
  EXPECT_EQ(writer->newest_step(), 3u);
  EXPECT_FALSE(notes.empty());
}

// A machine that was thought dead went on saving, beside the one that had taken its place.
TEST_F(SavedStateTest, OfTwoThatGoOnTheLaterOneSaves) {
  save(1);
  std::vector<std::string> notes;
  Engine other = make_engine(99);
  const std::unique_ptr<SavedState> successor = open();
  ASSERT_TRUE(successor->restore(other, &notes));
  RunState state;
  state.step = 2;
  successor->save(other, state, {.samples = 16, .keep = 10}, &notes);
  try {
    save(3);
    FAIL() << "it is no longer the newest";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
    EXPECT_THAT(error.message(), HasSubstr("another attempt has gone on with this run"));
  }
  const std::optional<RunState> found = open()->restore(engine, &notes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 2u);
}

TEST_F(SavedStateTest, OneThatTheRunWentOnWithoutDoesNotCount) {
  save(1);
  save(2);
  const std::string manifest_of_2 = fs.read_file(manifest(2));
  replace(manifest(2), "{");
  std::vector<std::string> notes;
  const std::unique_ptr<SavedState> successor = open();
  EXPECT_EQ(successor->restore(engine, &notes)->step, 1u);
  RunState state;
  state.step = 4;
  successor->save(engine, state, {.samples = 32}, &notes);
  replace(manifest(2), manifest_of_2);  // it could be read after all
  fs.remove_tree(std::string(kDirectory) + "/step-00000004");
  notes.clear();
  EXPECT_EQ(open()->restore(engine, &notes)->step, 1u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("generation 1 went on from step 1 without it"));
}

TEST_F(SavedStateTest, AStateInMemoryThatIsNewerComesFirst) {
  const checkpoint::MemorySnapshot::Files files = checkpoint::MemorySnapshot::create();
  const checkpoint::MemorySnapshot memory(files.image.get(), files.manifest.get());
  const auto open_with_memory = [&] { return std::make_unique<SavedState>(fs, clock, kDirectory, "recipe", memory); };
  std::vector<std::string> notes;
  RunState state;
  state.step = 5;
  const std::unique_ptr<SavedState> first = open_with_memory();
  first->save(engine, state, {.samples = 40}, &notes);
  state.step = 7;
  first->start_memory_save(engine, state, 56);
  first->finish_save(&notes);
  EXPECT_EQ(first->newest_step(), 5u) << "memory is no checkpoint";

  Engine other = make_engine(99);
  const std::unique_ptr<SavedState> next = open_with_memory();
  const std::optional<RunState> found = next->restore(other, &notes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 7u);
  EXPECT_EQ(next->newest_step(), 5u);
  for (size_t i = 0; i < engine.state().size(); ++i)
    EXPECT_TRUE(at::equal(engine.state()[i].tensor, other.state()[i].tensor)) << engine.state()[i].name;
  EXPECT_EQ(next->restore_from_disk(other, &notes)->step, 5u) << "what a rollback asks for";

  // The disk's is as new: it comes from there. One that is damaged in memory does not count either.
  state.step = 9;
  next->save(engine, state, {.samples = 72}, &notes);
  const char wrong = 'x';
  ASSERT_EQ(::pwrite(files.image.get(), &wrong, 1, 5000), 1);
  EXPECT_EQ(open_with_memory()->restore(other, &notes)->step, 9u);
  next->start_memory_save(engine, state, 80);
  next->finish_save(&notes);
  fs.remove_tree(std::string(kDirectory) + "/step-00000009");
  ASSERT_EQ(::pwrite(files.image.get(), &wrong, 1, 5000), 1);
  EXPECT_EQ(open_with_memory()->restore(other, &notes)->step, 5u);
}

TEST_F(SavedStateTest, AStateInMemoryMustCountAndBeOfThisData) {
  const checkpoint::MemorySnapshot::Files files = checkpoint::MemorySnapshot::create();
  const checkpoint::MemorySnapshot memory(files.image.get(), files.manifest.get());
  const auto open_with_memory = [&](const std::string& data) {
    auto saved = std::make_unique<SavedState>(fs, clock, kDirectory, "recipe", memory);
    data::DatasetInfo info;
    info.fingerprint = data;
    saved->set_data(info);
    return saved;
  };
  std::vector<std::string> notes;
  RunState state;
  state.step = 400;
  const std::unique_ptr<SavedState> first = open_with_memory("data");
  first->start_memory_save(engine, state, 3200);
  first->finish_save(&notes);
  EXPECT_THROW(open_with_memory("other data")->restore(engine, &notes), Error);
  EXPECT_EQ(open_with_memory("data")->restore(engine, &notes)->step, 400u);
  fs.make_directories(kDirectory);
  checkpoint::add_generation(fs, kDirectory, {.number = 2, .start_step = 250});
  try {
    open_with_memory("data")->restore(engine, &notes);
    FAIL() << "another attempt went on from step 250";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kLostWorkers);
  }
}

TEST_F(SavedStateTest, ASaveIsGivenUpWhenItsTimeIsOver) {
  save(1);
  for (const bool by_deadline : {false, true}) {
    std::promise<void> told;
    std::shared_future<void> go_on = told.get_future().share();
    fs.set_fault([go_on](std::string_view call, const std::string& path) {
      if (call == "open" && path.find("step-00000002") != std::string::npos) go_on.wait();
      return 0;
    });
    RunState state;
    state.step = 2;
    writer->start_save(engine, state, {.samples = 16});
    const double now = clock.monotonic_seconds();
    by_deadline ? writer->set_deadline([now] { return std::optional(now - 1); }) : writer->give_up();
    told.set_value();
    std::vector<std::string> notes;
    try {
      writer->finish_save(&notes);
      FAIL() << by_deadline;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
      EXPECT_THAT(fs.list(kDirectory), testing::Not(testing::Contains(HasSubstr("step-00000002"))));
    }
  }
  writer->set_deadline({});
  save(2);
  EXPECT_EQ(writer->newest_step(), 2u);
}

}  // namespace
}  // namespace skytrain::train
