#include "skytrain/record/metrics.h"

#include <limits>
#include <optional>
#include <string_view>

#include "skytrain/base/error.h"
#include "skytrain/base/text.h"
#include "skytrain/record/append_log.h"

namespace skytrain::record {

namespace {

constexpr double kFlushSeconds = 1;
// No line of ours comes near this: what is longer and has no end is somebody else's file.
constexpr size_t kLongestLine = 64 << 10;

struct Line {
  uint64_t number = 0;  // counted from 1
  size_t begin = 0;     // byte offset in the file
  std::string_view text;
  bool whole = false;  // ended by a newline
};

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  Line line;
  while (line.begin < text.size()) {
    const size_t end = text.find('\n', line.begin);
    line.whole = end != std::string_view::npos;
    line.text = text.substr(line.begin, line.whole ? end - line.begin : std::string_view::npos);
    ++line.number;
    visit(line);
    line.begin += line.text.size() + 1;
  }
}

[[noreturn]] void throw_bad_line(const std::string& path, uint64_t number, const std::string& problem) {
  throw Error(ErrorKind::kData, str(path, ":", number), "the line " + problem,
              "nothing was changed; mend the line, or move the file aside to go on without the earlier metrics");
}

// The disk held only a part of the line when the power went or the writer was killed: a prefix of an object, or, where
// the length of the file reached the disk before its bytes, zeros. JSON never holds a zero byte.
bool may_be_torn(const Line& line) {
  if (line.text.find('\0') != std::string_view::npos) return true;
  return !line.whole && line.text.size() <= kLongestLine && line.text.front() == '{';
}

// How many bytes from the start of the file are lines with step <= resume_step.
uint64_t bytes_to_keep(std::string_view text, const std::string& path, uint64_t resume_step, bool redo_evaluation) {
  std::optional<size_t> cut;
  uint64_t last_step = 0;
  for_each_line(text, [&](const Line& line) {
    if (may_be_torn(line)) {
      if (!cut) cut = line.begin;
      return;
    }
    std::string problem;
    const auto parsed = parse_metrics_line(line.text, &problem);
    if (!parsed) throw_bad_line(path, line.number, problem);
    const bool redone = redo_evaluation && parsed->is_eval && parsed->step == resume_step;
    if (parsed->step < last_step || (cut && parsed->step <= resume_step && !redone)) {
      throw_bad_line(path, line.number, str("has step ", parsed->step, " after a line of a later step"));
    }
    last_step = parsed->step;
    if (!cut && (parsed->step > resume_step || redone)) cut = line.begin;
  });
  return cut.value_or(text.size());
}

// The size to which the file was cut; 0 when there is none.
uint64_t drop_beyond(FileSystem& fs, const std::string& path, uint64_t resume_step, bool redo_evaluation) {
  if (!fs.exists(path)) return 0;
  const std::string text = fs.read_file(path);
  const uint64_t keep = bytes_to_keep(text, path, resume_step, redo_evaluation);
  if (keep < text.size()) fs.truncate(path, keep);
  return keep;
}

}  // namespace

struct MetricsWriter::Impl {
  Impl(FileSystem& fs, const std::string& path, uint64_t resume_step, bool redo_evaluation, Clock& the_clock)
      : clock(the_clock), log(fs, path, drop_beyond(fs, path, resume_step, redo_evaluation)) {}

  Clock& clock;
  AppendLog log;
  double next_flush = -std::numeric_limits<double>::infinity();  // the first line shows at once
};

MetricsWriter::MetricsWriter(FileSystem& fs, const std::string& path, uint64_t resume_step, Clock& clock,
                             bool redo_evaluation)
    : impl_(std::make_unique<Impl>(fs, path, resume_step, redo_evaluation, clock)) {}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::write(const OrderedJson& line) {
  // Text that is not UTF-8 (a file's name) must not end a run; NaN and infinity become null.
  impl_->log.append(line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
  const double now = impl_->clock.monotonic_seconds();
  if (now < impl_->next_flush) return;
  impl_->next_flush = now + kFlushSeconds;
  impl_->log.flush();
}

void MetricsWriter::flush() { impl_->log.flush(); }

void MetricsWriter::sync() { impl_->log.sync(); }

std::vector<Json> read_metrics(const FileSystem& fs, const std::string& path) {
  std::vector<Json> lines;
  if (!fs.exists(path)) return lines;
  const std::string text = fs.read_file(path);
  for_each_line(text, [&](const Line& line) {
    if (!line.whole) return;
    Json parsed = parse_json(line.text, str(path, ":", line.number));
    if (!parsed.is_object()) {
      throw Error(ErrorKind::kData, str(path, ":", line.number), "the line is not a JSON object");
    }
    lines.push_back(std::move(parsed));
  });
  return lines;
}

MetricsScan scan_metrics(const FileSystem& fs, const std::string& path,
                         const std::function<void(const MetricsLine&)>& visit) {
  MetricsScan scan;
  if (!fs.exists(path)) return scan;
  const std::string text = fs.read_file(path);
  for_each_line(text, [&](const Line& line) {
    if (!line.whole) {
      scan.torn = true;
      return;
    }
    std::string problem;
    if (const auto parsed = parse_metrics_line(line.text, &problem)) {
      ++scan.lines;
      visit(*parsed);
    } else {
      ++scan.unreadable;
      if (scan.first_unreadable == 0) scan.first_unreadable = line.number;
    }
  });
  return scan;
}

}  // namespace skytrain::record
