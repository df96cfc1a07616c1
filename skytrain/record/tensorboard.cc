#include "skytrain/record/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/record/append_log.h"
#include "skytrain/record/crc32c.h"

namespace skytrain::record {

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr double kFlushSeconds = 1;

// Field numbers of the protobuf messages.
enum Event { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum Summary { kValue = 1 };
enum Value { kTag = 1, kSimpleValue = 2 };
enum SessionLog { kStatus = 1 };
constexpr int kSessionStart = 1;

void append_little_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// Length, its checksum, the message, its checksum.
std::string tf_record(const std::string& message) {
  std::string record;
  record.reserve(message.size() + 16);
  append_little_endian(record, message.size(), 8);
  append_little_endian(record, masked_crc32c(record), 4);
  record += message;
  append_little_endian(record, masked_crc32c(message), 4);
  return record;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string safe = name;
  std::replace(safe.begin(), safe.end(), '/', '-');
  return safe;
}

// Seconds in the name of an event file; 0 when it is none.
uint64_t seconds_of(std::string_view name) {
  if (name.substr(0, kPrefix.size()) != kPrefix) return 0;
  uint64_t seconds = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
  return seconds;
}

std::string new_file(const FileSystem& fs, const Clock& clock, const std::string& directory) {
  auto seconds = static_cast<uint64_t>(std::max(0.0, clock.unix_seconds()));
  for (const std::string& name : fs.list(directory)) seconds = std::max(seconds, seconds_of(name) + 1);
  char padded[24];
  std::snprintf(padded, sizeof padded, "%010llu", static_cast<unsigned long long>(seconds));
  return str(directory, "/", kPrefix, padded, ".", host_name(), ".", getpid(), ".0");
}

}  // namespace

struct TensorBoardWriter::Impl {
  Impl(FileSystem& fs, Clock& the_clock, const std::string& directory)
      : clock(the_clock), path(new_file(fs, the_clock, directory)), log(fs, path, 0) {}

  template <class Fill>
  void event(uint64_t step, Fill fill) {
    std::string message;
    protozero::pbf_writer event(message);
    event.add_double(kWallTime, clock.unix_seconds());
    event.add_int64(kStep, static_cast<int64_t>(step));
    fill(event);
    log.append(tf_record(message));
  }

  Clock& clock;
  std::string path;
  AppendLog log;
  double next_flush = -std::numeric_limits<double>::infinity();
};

TensorBoardWriter::TensorBoardWriter(FileSystem& fs, Clock& clock, const std::string& directory, uint64_t resume_step)
    : impl_(std::make_unique<Impl>(fs, clock, directory)) {
  // Version 2 is what makes readers look at SessionLog.
  impl_->event(0, [](protozero::pbf_writer& event) { event.add_string(kFileVersion, "brain.Event:2"); });
  impl_->event(resume_step + 1, [](protozero::pbf_writer& event) {
    protozero::pbf_writer session(event, kSessionLog);
    session.add_enum(kStatus, kSessionStart);
  });
  impl_->log.flush();
}

TensorBoardWriter::~TensorBoardWriter() = default;

const std::string& TensorBoardWriter::path() const { return impl_->path; }

void TensorBoardWriter::scalar(const std::string& tag, uint64_t step, double value) {
  impl_->event(step, [&](protozero::pbf_writer& event) {
    protozero::pbf_writer summary(event, kSummary);
    protozero::pbf_writer entry(summary, kValue);
    entry.add_string(kTag, tag);
    entry.add_float(kSimpleValue, static_cast<float>(value));
  });
  const double now = impl_->clock.monotonic_seconds();
  if (now < impl_->next_flush) return;
  impl_->next_flush = now + kFlushSeconds;
  impl_->log.flush();
}

void TensorBoardWriter::flush() { impl_->log.flush(); }

}  // namespace skytrain::record
