#include "skytrain/record/tensorboard.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <protozero/pbf_reader.hpp>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/record/crc32c.h"
#include "skytrain/record/metrics.h"

namespace skytrain::record {
namespace {

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version, tag;
  float value = 0;
  int session_status = 0;
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

Event decode(const std::string& message) {
  Event event;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        event.wall_time = reader.get_double();
        break;
      case 2:
        event.step = reader.get_int64();
        break;
      case 3:
        event.version = reader.get_string();
        break;
      case 5: {
        protozero::pbf_reader summary = reader.get_message();
        EXPECT_TRUE(summary.next(1));
        protozero::pbf_reader value = summary.get_message();
        while (value.next()) {
          if (value.tag() == 1) {
            event.tag = value.get_string();
          } else if (value.tag() == 2) {
            event.value = value.get_float();
          } else {
            value.skip();
          }
        }
        break;
      }
      case 7: {
        protozero::pbf_reader session = reader.get_message();
        EXPECT_TRUE(session.next(1));
        event.session_status = session.get_enum();
        break;
      }
      default:
        reader.skip();
    }
  }
  return event;
}

// Every record of the file, its checksums verified.
std::vector<Event> read_events(const FileSystem& fs, const std::string& path) {
  const std::string file = fs.read_file(path);
  const std::string_view bytes = file;
  std::vector<Event> events;
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t length = little_endian(bytes.substr(at, 8));
    EXPECT_EQ(little_endian(bytes.substr(at + 8, 4)), masked_crc32c(bytes.substr(at, 8)));
    const std::string message(bytes.substr(at + 12, length));
    EXPECT_EQ(message.size(), length);
    EXPECT_EQ(little_endian(bytes.substr(at + 12 + length, 4)), masked_crc32c(message));
    events.push_back(decode(message));
    at += 16 + length;
  }
  return events;
}

class TensorBoard : public testing::Test {
 protected:
  TensorBoard() { fs.make_directories("/run"); }
  MemoryFileSystem fs;
  FakeClock clock{1764510607.5};
};

TEST(Crc32c, GivesThePublishedValues) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST_F(TensorBoard, WritesVersionSessionAndScalars) {
  std::string path;
  {
    TensorBoardWriter writer(fs, clock, "/run", 0);
    writer.scalar("train/loss", 100, 0.1);
    clock.advance(3);
    writer.scalar("eval/top1", 938, 0.975);
    path = writer.path();
  }
  const auto events = read_events(fs, path);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].session_status, 1);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].tag, "train/loss");
  EXPECT_EQ(events[2].step, 100);
  EXPECT_EQ(events[2].value, 0.1f);
  EXPECT_EQ(events[2].wall_time, 1764510607.5);
  EXPECT_EQ(events[3].tag, "eval/top1");
  EXPECT_EQ(events[3].value, 0.975f);
  EXPECT_EQ(events[3].wall_time, 1764510610.5);
}

TEST_F(TensorBoard, AResumeAsksToDropWhatLiesBeyond) {
  TensorBoardWriter writer(fs, clock, "/run", 500);
  const auto events = read_events(fs, writer.path());
  ASSERT_EQ(events.size(), 2u);  // on the disk before the first scalar
  EXPECT_EQ(events[1].session_status, 1);
  EXPECT_EQ(events[1].step, 501);
}

// TensorBoard reads files by name; after the clock had gone back an hour, the old attempt's curve replaced the new
// one's.
TEST_F(TensorBoard, ALaterAttemptSortsLaterWhateverTheClockSays) {
  std::vector<std::string> paths;
  for (const double start : {1764510607.5, 1764510607.9, 1764507007.0, 5.0}) {
    FakeClock now(start);
    paths.push_back(TensorBoardWriter(fs, now, "/run", 0).path());
  }
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  EXPECT_EQ(std::adjacent_find(paths.begin(), paths.end()), paths.end());
}

TEST_F(TensorBoard, AFullDiskLeavesWholeRecords) {
  TensorBoardWriter writer(fs, clock, "/run", 0);
  fs.set_capacity(fs.stat(writer.path())->size + 30);
  clock.advance(2);
  EXPECT_THROW(writer.scalar("train/loss", 1, 1.5), Error);
  fs.set_capacity(1 << 20);
  writer.scalar("train/loss", 2, 1.25);
  writer.flush();
  const auto events = read_events(fs, writer.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].step, 1);
  EXPECT_EQ(events[3].step, 2);
}

// With SKYTRAIN_RECORD_FIXTURE=<folder> leaves a run of two attempts there, the second resumed from step 60 of 90, for
// tests/judges/judge_tensorboard.py.
TEST(RecordFixture, IsWrittenWhenAsked) {
  const char* const folder = getenv("SKYTRAIN_RECORD_FIXTURE");
  if (!folder) return;
  FileSystem& fs = FileSystem::real();
  fs.make_directories(folder);
  const auto attempt = [&](uint64_t resume_step, uint64_t last_step) {
    MetricsWriter metrics(fs, str(folder, "/metrics.jsonl"), resume_step);
    TensorBoardWriter events(fs, Clock::real(), folder, resume_step);
    for (uint64_t step = resume_step + 1; step <= last_step; ++step) {
      const double loss = 2.3 / static_cast<double>(step + resume_step), rate = 15000.0 + static_cast<double>(step);
      metrics.write({{"step", step}, {"loss", loss}, {"lr", 1e-3}, {"samples_per_second", rate}});
      events.scalar("train/loss", step, loss);
      events.scalar("train/lr", step, 1e-3);
      events.scalar("train/samples_per_second", step, rate);
      if (step % 30 != 0) continue;
      metrics.write({{"step", step}, {"eval", {{"loss", loss / 2}, {"top1", 0.9}}}});
      events.scalar("eval/loss", step, loss / 2);
      events.scalar("eval/top1", step, 0.9);
    }
  };
  attempt(0, 90);
  attempt(60, 120);
}

}  // namespace
}  // namespace skytrain::record
