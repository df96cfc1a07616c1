// skytrain/record/tensorboard.h
//
// TensorBoard event files: TFRecord framing (masked CRC32C) around Event protobufs
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto).

#pragma once
#include <memory>
#include <string>

#include "skytrain/base/clock.h"
#include "skytrain/base/file_system.h"

namespace skytrain::record {

class TensorBoardWriter {
 public:
  // Opens <directory>/events.out.tfevents.<unix seconds>.<host>.<pid>.<n>. With resume_step > 0 it first writes a
  // SessionLog START at resume_step + 1, which makes TensorBoard drop what an earlier attempt wrote beyond.
  TensorBoardWriter(FileSystem& fs, Clock& clock, const std::string& directory, uint64_t resume_step);
  ~TensorBoardWriter();
  // tag: "train/loss". Not thread-safe.
  void scalar(const std::string& tag, uint64_t step, double value);
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skytrain::record
