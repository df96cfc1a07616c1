#include "skytrain/checkpoint/background_save.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace skytrain::checkpoint {
namespace {

TEST(BackgroundSave, HoldsUpItsCallerForTheSnapshotOnly) {
  BackgroundSave save;
  save.wait_for_snapshot();  // none is going on
  EXPECT_FALSE(save.going_on());
  std::promise<void> may_copy, may_write;
  std::atomic<int> stage = 0;
  save.start(
      [&] {
        may_copy.get_future().wait();
        stage = 1;
      },
      [&] {
        may_write.get_future().wait();
        stage = 2;
        return std::string("/step-1");
      });
  EXPECT_TRUE(save.going_on());
  may_copy.set_value();
  save.wait_for_snapshot();
  EXPECT_EQ(stage, 1);
  EXPECT_FALSE(save.done());
  may_write.set_value();
  const BackgroundSave::Outcome outcome = save.take();
  EXPECT_EQ(stage, 2);
  EXPECT_EQ(outcome.path, "/step-1");
  EXPECT_FALSE(outcome.failure);
  EXPECT_FALSE(save.going_on());
}

TEST(BackgroundSave, AFailureIsTheOutcomeAndTheNextSaveWorks) {
  BackgroundSave save;
  bool committed = false;
  save.start([] { throw std::runtime_error("copy"); },
             [&] {
               committed = true;
               return std::string();
             });
  save.wait_for_snapshot();  // though the snapshot will never be there
  EXPECT_THROW(std::rethrow_exception(save.take().failure), std::runtime_error);
  EXPECT_FALSE(committed) << "what was not copied was written";
  save.start([] {}, []() -> std::string { throw std::runtime_error("write"); });
  EXPECT_TRUE(save.take().failure);
  save.start([] {}, [] { return std::string("/step-2"); });
  EXPECT_EQ(save.take().path, "/step-2");
}

TEST(BackgroundSave, IsFinishedBeforeItsOwnerGoes) {
  bool committed = false;
  {
    BackgroundSave save;
    save.start([] {},
               [&] {
                 std::this_thread::sleep_for(std::chrono::milliseconds(20));
                 committed = true;
                 return std::string();
               });
  }
  EXPECT_TRUE(committed);
}

}  // namespace
}  // namespace skytrain::checkpoint
