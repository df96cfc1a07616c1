#include "skytrain/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "skytrain/base/clock.h"

namespace skytrain {
namespace {

TEST(Error, ReadsAsPlaceProblemAndHint) {
  const Error error(ErrorKind::kRecipe, "recipe.yaml:14:12: train.optimizer.name", "unknown optimizer \"adamm\"",
                    "known: adam, sgd\nsee docs/recipe.md");
  EXPECT_EQ(error.message(),
            "recipe.yaml:14:12: train.optimizer.name: unknown optimizer \"adamm\"\n"
            "  known: adam, sgd\n"
            "  see docs/recipe.md");
  EXPECT_STREQ(error.what(), error.message().c_str());
  EXPECT_EQ(Error(ErrorKind::kUsage, "", "what").message(), "what");
}

TEST(Error, NeverWritesControlCharactersOfItsPartsToTheTerminal) {
  const Error error(ErrorKind::kData, "a\x1b[2Jb", "evil\rname", "hint\twith\x07");
  EXPECT_EQ(error.message(), "a\\x1B[2Jb: evil\\x0Dname\n  hint\\x09with\\x07");
}

TEST(Error, IsCutWhenAPartIsHuge) {
  const Error error(ErrorKind::kData, std::string(1 << 20, 'x'), "too long", std::string(1 << 20, 'y'));
  EXPECT_LT(error.message().size(), 5000u);
}

TEST(Error, KindsKeepTheirExitCodesAndNames) {
  const std::pair<ErrorKind, std::pair<int, std::string_view>> expected[] = {
      {ErrorKind::kInternal, {1, "internal"}},
      {ErrorKind::kUsage, {2, "usage"}},
      {ErrorKind::kRecipe, {3, "recipe"}},
      {ErrorKind::kData, {4, "data"}},
      {ErrorKind::kEnvironment, {5, "environment"}},
      {ErrorKind::kCloud, {6, "cloud"}},
      {ErrorKind::kLostWorkers, {7, "lost_workers"}},
      {ErrorKind::kDiverged, {8, "diverged"}},
      {ErrorKind::kBudget, {9, "budget"}},
      {ErrorKind::kInterrupted, {75, "interrupted"}},
      {ErrorKind::kAborted, {130, "aborted"}},
  };
  for (const auto& [kind, code_and_name] : expected) {
    EXPECT_EQ(exit_code(kind), code_and_name.first);
    EXPECT_EQ(error_kind_name(kind), code_and_name.second);
    EXPECT_EQ(error_kind_from_name(code_and_name.second), kind);
  }
  EXPECT_EQ(error_kind_from_name("no such kind"), ErrorKind::kInternal);
}

TEST(Error, OfErrnoSaysWhatToDo) {
  const Error full = errno_error("/data/x", "cannot write", ENOSPC);
  EXPECT_EQ(full.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(full.problem(), "cannot write: No space left on device");
  EXPECT_EQ(full.hint(), "free some space, or choose a folder on another disk");
  EXPECT_EQ(errno_error("x", "cannot open", EACCES).problem(), "cannot open: Permission denied");
}

TEST(Clock, FormatsUtc) {
  EXPECT_EQ(format_utc(1796046607.9), "2026-11-30T13:50:07Z");
  EXPECT_EQ(format_utc(1796046607.9, /*compact=*/true), "20261130T135007Z");
  EXPECT_EQ(format_utc(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_utc(-0.5), "1969-12-31T23:59:59Z");
}

TEST(Clock, FakeTimeMovesOnlyByHand) {
  FakeClock clock(1000);
  EXPECT_EQ(clock.unix_seconds(), 1000);
  EXPECT_EQ(clock.monotonic_seconds(), 0);
  clock.sleep_seconds(2.5);
  clock.advance(0.5);
  EXPECT_EQ(clock.unix_seconds(), 1003);
  EXPECT_EQ(clock.monotonic_seconds(), 3);
}

TEST(Clock, RealTimeGoesForwardAndSleeps) {
  Clock& clock = Clock::real();
  EXPECT_GT(clock.unix_seconds(), 1.6e9);
  const double before = clock.monotonic_seconds();
  clock.sleep_seconds(0.01);
  clock.sleep_seconds(-1);
  EXPECT_GE(clock.monotonic_seconds() - before, 0.01);
}

}  // namespace
}  // namespace skytrain
