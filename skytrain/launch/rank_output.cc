#include "skytrain/launch/rank_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "skytrain/base/clock.h"
#include "skytrain/base/error.h"
#include "skytrain/base/text.h"

namespace skytrain::launch {
namespace {

constexpr size_t kTailLines = 40;

std::string rank_log(const std::string& directory, int rank) { return str(directory, "/rank-", rank, ".log"); }

}  // namespace

RankLogs::RankLogs(FileSystem& fs, std::string directory, int first, int ranks, OutputQueue& queue)
    : directory_(std::move(directory)), queue_(queue) {
  if (directory_.empty()) return;
  fs.make_directories(directory_);
  for (int rank = first; rank < first + ranks; ++rank) {
    ranks_[rank] = fs.open_write(rank_log(directory_, rank), FileSystem::Mode::kAppend);
  }
  merged_ = fs.open_write(directory_ + "/all.log", FileSystem::Mode::kAppend);
}

void RankLogs::write(int rank, std::string_view bytes) {
  if (!ranks_.empty()) write(ranks_.at(rank), rank_log(directory_, rank), bytes);
}

void RankLogs::write_merged(std::string_view line) { write(merged_, directory_ + "/all.log", line); }

void RankLogs::write(std::unique_ptr<WritableFile>& file, const std::string& path, std::string_view bytes) {
  if (!file) return;
  try {
    file->append(bytes);
  } catch (const Error& error) {
    file.reset();
    queue_.say(str("warning: ", path, " ends here: ", error.problem()));
  }
}

RankOutput::RankOutput(int rank, std::string prefix, int out, int err, RankLogs& logs, OutputQueue& queue)
    : rank_(rank), prefix_(std::move(prefix)), logs_(logs), queue_(queue) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw errno_error(str("rank ", rank), "cannot make a pipe", errno);
    stream.ours = Fd(ends[0]);
    stream.theirs = Fd(ends[1]);
    ::fcntl(stream.ours.get(), F_SETFL, O_NONBLOCK);
    stream.target = i == 0 ? out : err;
    stream.lines = std::make_unique<LineSplitter>([this, &stream](std::string_view line) { take(stream, line); });
  }
}

void RankOutput::close_rank_ends() {
  for (Stream& stream : streams_) stream.theirs.reset();
}

bool RankOutput::read(int which) {
  Stream& stream = streams_[static_cast<size_t>(which)];
  if (!stream.ours) return false;
  char buffer[65536];
  const ssize_t n = ::read(stream.ours.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) {
    stream.lines->finish();
    stream.ours.reset();
    return false;
  }
  const std::string_view bytes(buffer, static_cast<size_t>(n));
  logs_.write(rank_, bytes);
  if (prefix_.empty()) queue_.add(stream.target, bytes);
  stream.lines->feed(bytes, Clock::real().monotonic_seconds());
  return true;
}

void RankOutput::finish() {
  close_rank_ends();
  for (int which = 0; which < 2; ++which) {
    while (read(which)) {
    }
    Stream& stream = streams_[static_cast<size_t>(which)];
    if (!stream.ours) continue;
    stream.lines->finish();  // a writer is stuck in the kernel
    stream.ours.reset();
  }
}

void RankOutput::take(Stream& stream, std::string_view line) {
  const std::string text = str(prefix_, line, "\n");
  if (!prefix_.empty()) queue_.add(stream.target, text);
  logs_.write_merged(text);
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  tail_.push_back("  " + printable(line));
  if (tail_.size() > kTailLines) tail_.pop_front();
}

std::string RankOutput::last_lines(size_t lines) const {
  const size_t skipped = tail_.size() > lines ? tail_.size() - lines : 0;
  return join({tail_.begin() + static_cast<std::ptrdiff_t>(skipped), tail_.end()}, "\n");
}

}  // namespace skytrain::launch
