// skytrain/launch/rank_output.h
//
// What ranks print: each line with its rank before it, on our stdout or stderr, and into files. Belongs to one thread.

#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "skytrain/base/file_system.h"
#include "skytrain/base/process.h"
#include "skytrain/launch/line_splitter.h"
#include "skytrain/launch/output_queue.h"

namespace skytrain::launch {

// DIRECTORY/rank-<r>.log, as the rank wrote it, and DIRECTORY/all.log, with prefixes; what is there is appended to.
class RankLogs {
 public:
  // For ranks first, first + 1, …. Throws Error(kEnvironment) when they can't be made. directory "": no files.
  RankLogs(FileSystem& fs, std::string directory, int first, int ranks, OutputQueue& queue);
  void write(int rank, std::string_view bytes);
  void write_merged(std::string_view line);  // with its end of line

 private:
  // A disk that is full ends the file, not the job.
  void write(std::unique_ptr<WritableFile>& file, const std::string& path, std::string_view bytes);

  std::string directory_;
  std::map<int, std::unique_ptr<WritableFile>> ranks_;
  std::unique_ptr<WritableFile> merged_;
  OutputQueue& queue_;
};

class RankOutput {
 public:
  // prefix: "[3] "; "" hands the bytes on as they are. out, err: where to: 1 or 2.
  RankOutput(int rank, std::string prefix, int out, int err, RankLogs& logs, OutputQueue& queue);
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  // Ends of the pipes for the rank, until close_rank_ends().
  int rank_out() const { return streams_[0].theirs.get(); }
  int rank_err() const { return streams_[1].theirs.get(); }
  void close_rank_ends();

  int fd(int stream) const { return streams_[static_cast<size_t>(stream)].ours.get(); }  // 0: stdout, 1: stderr
  // Reads what is there, a bounded amount. false: nothing was there.
  bool read(int stream);
  // All writers are gone: reads the rest.
  void finish();

  std::string last_lines(size_t lines) const;  // indented, without control characters; "" when there are none

 private:
  struct Stream {
    Fd ours, theirs;
    int target = 1;
    std::unique_ptr<LineSplitter> lines;  // for the prefix, the merged file and the last words
  };
  void take(Stream& stream, std::string_view line);

  int rank_;
  std::string prefix_;
  std::array<Stream, 2> streams_;
  std::deque<std::string> tail_;
  RankLogs& logs_;
  OutputQueue& queue_;
};

}  // namespace skytrain::launch
