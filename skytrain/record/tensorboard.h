// skytrain/record/tensorboard.h
//
// TensorBoard event files: TFRecord framing (masked CRC32C) around Event protobufs
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto).

#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"

namespace skytrain::record {

class TensorBoardWriter {
 public:
  // Opens <directory>/events.out.tfevents.<unix seconds>.<host>.<pid>.<n>, a name that sorts after the event files that
  // are there (also when the clock went back), because TensorBoard reads them in the order of their names. The file
  // begins with a SessionLog START at resume_step + 1, which makes TensorBoard drop what earlier files hold from that
  // step on.
  TensorBoardWriter(FileSystem& fs, Clock& clock, const std::string& directory, uint64_t resume_step);
  ~TensorBoardWriter();  // writes what is buffered

  // tag: "train/loss". Buffered; handed to the file at most once a second, by the time of the calls. Kept as a float.
  // Not thread-safe. After an Error (a full disk) the file holds whole records, and the next call tries again.
  void scalar(const std::string& tag, uint64_t step, double value);
  void flush();

  const std::string& path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skytrain::record
