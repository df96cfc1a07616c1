#include "skytrain/record/metrics.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::record {
namespace {

const std::string kPath = "/runs/m/metrics.jsonl";

OrderedJson train_line(uint64_t step) {
  return {{"t", 1764510607.125 + static_cast<double>(step)},
          {"step", step},
          {"samples", step * 64},
          {"epoch", static_cast<double>(step) / 938},
          {"loss", 2.3 / static_cast<double>(step)},
          {"lr", 0.001},
          {"world", 1},
          {"generation", 0},
          {"samples_per_second", 15023.125},
          {"data_s", 0.001},
          {"forward_s", 0.25},
          {"backward_s", 0.5},
          {"optimizer_s", 0.125},
          {"other_s", 0.0625}};
}

OrderedJson eval_line(uint64_t step) {
  return {{"t", 1764510700.0},
          {"step", step},
          {"eval", {{"loss", 0.25}, {"top1", 0.9}, {"samples", 10000}, {"seconds", 0.5}}}};
}

std::vector<uint64_t> steps(const FileSystem& fs) {
  std::vector<uint64_t> out;
  for (const Json& line : read_metrics(fs, kPath)) out.push_back(line.at("step").get<uint64_t>());
  return out;
}

class Metrics : public testing::Test {
 protected:
  Metrics() { fs.make_directories("/runs/m"); }

  void put(const std::string& text) { fs.open_write(kPath, FileSystem::Mode::kTruncate)->append(text); }
  void resume(uint64_t step, bool redo_evaluation = false) { MetricsWriter(fs, kPath, step, clock, redo_evaluation); }
  ErrorKind resume_error(uint64_t step, std::string* message) {
    try {
      resume(step);
    } catch (const Error& error) {
      *message = error.message();
      return error.kind();
    }
    *message = "no error";
    return ErrorKind::kInternal;
  }

  MemoryFileSystem fs;
  FakeClock clock;
};

TEST_F(Metrics, ComeBackAsTheyWereWritten) {
  {
    MetricsWriter writer(fs, kPath, 0, clock);
    writer.write(train_line(1));
    writer.write(eval_line(1));
  }
  const auto lines = read_metrics(fs, kPath);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(OrderedJson::parse(lines[0].dump()), OrderedJson::parse(Json(train_line(1)).dump()));
  EXPECT_EQ(fs.read_file(kPath), train_line(1).dump() + "\n" + eval_line(1).dump() + "\n");
}

TEST_F(Metrics, AreScannedAsNumbers) {
  {
    MetricsWriter writer(fs, kPath, 0, clock);
    writer.write(train_line(3));
    OrderedJson odd = eval_line(4);
    odd["later"] = {{"step", 99}, {"loss", 5}, {"list", {1, {{"top1", 7}}}}};  // a key of a later version
    odd["loss"] = std::numeric_limits<double>::infinity();
    writer.write(odd);
  }
  std::vector<MetricsLine> lines;
  const MetricsScan scan = scan_metrics(fs, kPath, [&](const MetricsLine& line) { lines.push_back(line); });
  EXPECT_EQ(scan.lines, 2u);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].step, 3u);
  EXPECT_EQ(lines[0].samples, 192);
  EXPECT_EQ(lines[0].loss, 2.3 / 3);
  EXPECT_EQ(lines[0].backward_s, 0.5);
  EXPECT_EQ(lines[0].other_s, 0.0625);
  EXPECT_FALSE(lines[0].is_eval);
  EXPECT_TRUE(std::isnan(lines[0].eval_top1));
  EXPECT_EQ(lines[1].step, 4u);
  EXPECT_TRUE(lines[1].is_eval);
  EXPECT_EQ(lines[1].eval_top1, 0.9);
  EXPECT_EQ(lines[1].eval_seconds, 0.5);
  EXPECT_TRUE(std::isnan(lines[1].loss));
}

TEST_F(Metrics, MissingAndEmptyFilesHoldNoLines) {
  EXPECT_TRUE(read_metrics(fs, kPath).empty());
  EXPECT_EQ(scan_metrics(fs, kPath, [](const MetricsLine&) {}).lines, 0u);
  put("");
  EXPECT_TRUE(read_metrics(fs, kPath).empty());
  resume(7);
  EXPECT_EQ(fs.read_file(kPath), "");
}

// A run was stopped in an evaluation, resumed, killed after it, and resumed again: the evaluation was recorded twice.
TEST_F(Metrics, AnEvaluationThatWillBeRedoneIsDropped) {
  const std::string kept = train_line(3).dump() + "\n" + train_line(4).dump() + "\n";
  put(kept + eval_line(4).dump() + "\n" + train_line(5).dump() + "\n");
  resume(4, /*redo_evaluation=*/true);
  EXPECT_EQ(fs.read_file(kPath), kept);
  put(kept + eval_line(4).dump() + "\n" + eval_line(4).dump() + "\n");
  resume(4, /*redo_evaluation=*/true);
  EXPECT_EQ(fs.read_file(kPath), kept);
}

// A worker was killed in the middle of a write: the next one glued its first line to the torn end of the last.
TEST_F(Metrics, ALineTornAtAnyByteIsDroppedOnResume) {
  const std::string whole = train_line(1).dump() + "\n" + eval_line(1).dump() + "\n";
  const std::string all = whole + train_line(2).dump() + "\n";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    put(all.substr(0, cut));
    const size_t whole_lines = static_cast<size_t>(std::count(all.begin(), all.begin() + static_cast<long>(cut), '\n'));
    EXPECT_EQ(read_metrics(fs, kPath).size(), whole_lines) << cut;
    {
      MetricsWriter writer(fs, kPath, 2, clock);
      writer.write(train_line(3));
    }
    const auto lines = read_metrics(fs, kPath);
    ASSERT_EQ(lines.size(), whole_lines + 1) << cut;
    EXPECT_EQ(lines.back().at("step"), 3) << cut;
  }
}

// After a power cut the file had its length but not its bytes: JSON readers stopped at a line of zeros.
TEST_F(Metrics, ZerosThatAPowerCutLeftAreDroppedOnResume) {
  const std::string good = train_line(1).dump() + "\n";
  for (const std::string& tail : {std::string(100, '\0'), "{\"t\":1" + std::string(50, '\0'),
                                  std::string(60, '\0') + "5}\n" + train_line(9).dump() + "\n"}) {
    put(good + tail);
    resume(1);
    EXPECT_EQ(fs.read_file(kPath), good);
  }
  const std::string damaged = std::string(60, '\0') + "\n" + train_line(1).dump() + "\n";
  put(damaged);  // not an end that went missing, but a hole before what must be kept
  std::string message;
  EXPECT_EQ(resume_error(1, &message), ErrorKind::kData);
  EXPECT_EQ(fs.read_file(kPath), damaged);
}

TEST_F(Metrics, LinesBeyondTheResumedStepAreDroppedTrainingAndEvaluation) {
  std::string text;
  for (uint64_t step = 1; step <= 6; ++step) {
    text += train_line(step).dump() + "\n";
    if (step % 2 == 0) text += eval_line(step).dump() + "\n";
  }
  const std::vector<uint64_t> all = {1, 2, 2, 3, 4, 4, 5, 6, 6};
  for (uint64_t resume_step = 0; resume_step <= 7; ++resume_step) {
    put(text);
    resume(resume_step);
    std::vector<uint64_t> expected;
    std::copy_if(all.begin(), all.end(), std::back_inserter(expected), [&](uint64_t s) { return s <= resume_step; });
    EXPECT_EQ(steps(fs), expected) << resume_step;
  }
}

TEST_F(Metrics, AFileThatIsNotOursIsRefusedAndLeftAlone) {
  const std::string good = train_line(1).dump() + "\n";
  const struct {
    std::string text, place;
  } cases[] = {
      {"what is this\nnot JSON\n", ":1"},         {"no newline, no brace", ":1"},
      {good + "step,loss\n" + good, ":2"},        {good + "{\"t\":1}\n", ":2"},  // no step
      {good + "{\"step\":-2}\n", ":2"},                                          // not a whole number
      {good + "[{\"step\":2}]\n", ":2"},          {good + "\n", ":2"},
      {train_line(5).dump() + "\n" + good, ":2"},  // steps go back
      {"{" + std::string(100000, 'x'), ":1"},      // too long for a torn line
  };
  for (const auto& [text, place] : cases) {
    put(text);
    std::string message;
    EXPECT_EQ(resume_error(3, &message), ErrorKind::kData) << text.substr(0, 40);
    EXPECT_NE(message.find(kPath + place), std::string::npos) << message;
    EXPECT_EQ(fs.read_file(kPath), text);
  }
}

TEST_F(Metrics, ReadingNamesTheDamagedLine) {
  put(train_line(1).dump() + "\n{broken}\n" + train_line(2).dump() + "\n{\"to");
  try {
    read_metrics(fs, kPath);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find(":2"), std::string::npos) << error.message();
  }
  const MetricsScan scan = scan_metrics(fs, kPath, [](const MetricsLine&) {});
  EXPECT_EQ(scan.lines, 2u);
  EXPECT_EQ(scan.unreadable, 1u);
  EXPECT_EQ(scan.first_unreadable, 2u);
  EXPECT_TRUE(scan.torn);
}

TEST_F(Metrics, ReachTheFileAtMostOnceASecond) {
  int appends = 0;
  MetricsWriter writer(fs, kPath, 0, clock);
  fs.set_fault([&](std::string_view call, const std::string&) {
    appends += call == "append";
    return 0;
  });
  writer.write(train_line(1));
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1}));  // the first one shows at once
  for (uint64_t step = 2; step <= 1000; ++step) {
    clock.advance(0.01);
    writer.write(train_line(step));
  }
  EXPECT_LE(appends, 11);
  EXPECT_GE(steps(fs).size(), 900u);
  writer.sync();
  EXPECT_EQ(steps(fs).size(), 1000u);
}

TEST_F(Metrics, SurviveAPowerCutOnceSynced) {
  fs.sync_directory("/");
  fs.sync_directory("/runs");
  MetricsWriter writer(fs, kPath, 0, clock);
  writer.write(train_line(1));
  writer.sync();
  clock.advance(2);
  writer.write(train_line(2));
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1, 2}));
  fs.crash();
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1}));
}

// A crash between the truncation and the first new line: the next resume finds a prefix and does the same again.
TEST_F(Metrics, ResumeMayItselfBeInterrupted) {
  fs.sync_directory("/");
  fs.sync_directory("/runs");
  {
    MetricsWriter writer(fs, kPath, 0, clock);
    for (uint64_t step = 1; step <= 5; ++step) writer.write(train_line(step));
    writer.sync();
  }
  resume(3);
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1, 2, 3}));
  fs.crash();  // the truncation was not durable
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  {
    MetricsWriter writer(fs, kPath, 3, clock);
    writer.write(train_line(4));
    writer.sync();
  }
  fs.crash();
  EXPECT_EQ(steps(fs), (std::vector<uint64_t>{1, 2, 3, 4}));
}

// A disk ran full for a minute; when space came back, half a line stood in the middle of the file and no tool read it.
TEST_F(Metrics, AFullDiskLeavesNoTornLine) {
  for (uint64_t room = 1; room < 700; room += 13) {
    MemoryFileSystem disk;
    disk.make_directories("/runs/m");
    MetricsWriter writer(disk, kPath, 0, clock);
    writer.write(train_line(1));
    const uint64_t used = disk.read_file(kPath).size();
    disk.set_capacity(used + room);
    clock.advance(2);
    std::vector<uint64_t> expected = {1};
    for (uint64_t step = 2; step <= 4; ++step) {
      clock.advance(2);
      expected.push_back(step);
      try {
        writer.write(train_line(step));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      }
    }
    disk.set_capacity(1 << 20);
    writer.sync();
    EXPECT_EQ(steps(disk), expected) << room;
    EXPECT_FALSE(scan_metrics(disk, kPath, [](const MetricsLine&) {}).torn);
  }
}

TEST_F(Metrics, AWriterThatEndsOnAFullDiskLeavesWholeLines) {
  {
    MetricsWriter writer(fs, kPath, 0, clock);
    writer.write(train_line(1));
    fs.set_capacity(fs.read_file(kPath).size() + 100);
    writer.write(train_line(2));  // buffered; its destructor finds the disk full
  }
  EXPECT_EQ(fs.read_file(kPath), train_line(1).dump() + "\n");
}

// fsync failed once and "succeeded" the next time, because the kernel had dropped the pages: records were lost
// unnoticed.
TEST_F(Metrics, AFailedSyncIsNeverFollowedByAGoodOne) {
  MetricsWriter writer(fs, kPath, 0, clock);
  writer.write(train_line(1));
  fs.set_fault([](std::string_view call, const std::string&) { return call == "sync" ? EIO : 0; });
  EXPECT_THROW(writer.sync(), Error);
  fs.set_fault(nullptr);
  EXPECT_THROW(writer.sync(), Error);
}

TEST_F(Metrics, TextThatIsNotUtf8DoesNotEndTheRun) {
  {
    MetricsWriter writer(fs, kPath, 0, clock);
    OrderedJson line = train_line(1);
    line["note"] = "caf\xe9\nnext";
    line["loss"] = std::nan("");
    writer.write(line);
  }
  const auto lines = read_metrics(fs, kPath);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("note"), "caf\xef\xbf\xbd\nnext");
  EXPECT_TRUE(lines[0].at("loss").is_null());
}

// --log-every 1 writes hundreds of lines a second; the bound is loose because machines differ.
TEST_F(Metrics, ALineCostsMicroseconds) {
  MetricsWriter writer(fs, kPath, 0, clock);
  constexpr int kLines = 3000;
  std::vector<OrderedJson> lines;
  for (int i = 1; i <= kLines; ++i) lines.push_back(train_line(static_cast<uint64_t>(i)));
  const auto start = std::chrono::steady_clock::now();
  for (const OrderedJson& line : lines) writer.write(line);
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  RecordProperty("microseconds_per_line", str(spent.count() / kLines));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(spent.count() / kLines, 100);
#endif
}

}  // namespace
}  // namespace skytrain::record
